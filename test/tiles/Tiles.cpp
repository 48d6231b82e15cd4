//===- Tiles.cpp - tile instructions on a CPU that lacks them --------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// This file is linked into copies of attn-run and of the runtime. It executes the AMX instructions of compiled code, so
// that tests can check the code of level x86-64-amx on every CPU with the other features of this level. An instruction
// that a CPU lacks raises SIGILL. The handler of this signal decodes and executes the instruction, and continues after
// it. The linker redirects attnrt_cpu_lacks() to the wrapper below, which adds the AMX features to those of the CPU.
//
// The semantics are those of the Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, for LDTILECFG,
// TILEZERO, TILELOADD, TILESTORED, TDPBF16PS and TILERELEASE.
//
//===----------------------------------------------------------------------===//

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

namespace {

constexpr int kTiles = 8, kMostRows = 16, kMostBytes = 64;

struct Tile {
  int rows = 0, bytes = 0; // bytes: of one row
  alignas(64) uint8_t data[kMostRows][kMostBytes] = {};
};

/// The tiles of a thread. Instructions may use them only after LDTILECFG has set their sizes.
struct State {
  bool isConfigured = false;
  Tile tiles[kTiles];
};
thread_local State state;

[[noreturn]] void fail(const char *what, const uint8_t *code) {
  char text[160];
  int length = snprintf(text, sizeof text, "tiles: %s, at %02x %02x %02x %02x %02x\n", what,
                        code[0], code[1], code[2], code[3], code[4]);
  (void)!write(STDERR_FILENO, text, length);
  abort();
}

/// An instruction with a three-byte VEX prefix, and the registers of the thread that executes it.
class Instruction {
public:
  Instruction(const uint8_t *code, gregset_t &registers) : code(code), registers(registers) {}

  bool isVex() const { return code[0] == 0xc4 && (code[1] & 0x1f) == 2 && !(code[2] & 0x84); }
  int opcode() const { return code[3]; }
  int prefix() const { return code[2] & 3; } // 0 to 3 stand for no prefix, 66, F3 and F2
  bool hasMemory() const { return code[4] >> 6 != 3; }
  int reg() const { return code[4] >> 3 & 7; }
  int rm() const { return code[4] & 7; }
  int vvvv() const { return ~code[2] >> 3 & 15; }

  /// The address of the memory operand. `stride` is the scaled index register, which the instructions that load or
  /// store rows do not add to the address: it is the number of bytes from one row to the next.
  struct Address {
    uint8_t *base;
    int64_t stride;
  };
  Address address() const {
    const uint8_t *next = code + 5;
    int mod = code[4] >> 6, base = rm() | (code[1] & 0x20 ? 0 : 8);
    int64_t stride = 0, address = 0;
    bool hasBase = true;
    if (rm() == 4) {
      int sib = *next++, index = (sib >> 3 & 7) | (code[1] & 0x40 ? 0 : 8);
      base = (sib & 7) | (code[1] & 0x20 ? 0 : 8);
      hasBase = mod != 0 || (sib & 7) != 5;
      if (index != 4)
        stride = read(index) << (sib >> 6);
    } else if (mod == 0 && rm() == 5) {
      fail("an address relative to the instruction pointer", code);
    }
    if (hasBase)
      address = read(base);
    if (mod == 1)
      address += int8_t(*next);
    if (mod == 2 || !hasBase) {
      int32_t displacement;
      memcpy(&displacement, next, sizeof displacement);
      address += displacement;
    }
    return {reinterpret_cast<uint8_t *>(address), stride};
  }
  int length() const {
    if (!hasMemory())
      return 5;
    int mod = code[4] >> 6, sib = rm() == 4;
    bool hasBase = !sib || mod != 0 || (code[5] & 7) != 5;
    return 5 + sib + (mod == 1 ? 1 : mod == 2 || !hasBase ? 4 : 0);
  }

  const uint8_t *const code;

private:
  int64_t read(int number) const {
    static constexpr int kOrder[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                     REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                     REG_R12, REG_R13, REG_R14, REG_R15};
    return registers[kOrder[number]];
  }

  gregset_t &registers;
};

void configure(const Instruction &instruction) {
  const uint8_t *from = instruction.address().base;
  if (from[0] != 1 || from[1] != 0)
    fail("expected palette 1 and the start row 0", instruction.code);
  state = State();
  state.isConfigured = true;
  for (int i = 0; i < kTiles; ++i) {
    uint16_t bytes;
    memcpy(&bytes, from + 16 + 2 * i, sizeof bytes);
    state.tiles[i].bytes = bytes;
    state.tiles[i].rows = from[48 + i];
    if (bytes > kMostBytes || from[48 + i] > kMostRows)
      fail("a tile is too large", instruction.code);
  }
}

Tile &use(int number, const Instruction &instruction) {
  if (!state.isConfigured || number >= kTiles || !state.tiles[number].rows)
    fail("a tile is used without a configuration", instruction.code);
  return state.tiles[number];
}

/// Returns zero for a denormal number, because TDPBF16PS reads and writes denormal numbers as zeros.
float flush(float value) { return std::fabs(value) < FLT_MIN ? std::copysign(0.0f, value) : value; }

float widen(const uint8_t *bf16) {
  uint32_t bits = uint32_t(bf16[0] | bf16[1] << 8) << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return flush(value);
}

void multiply(Tile &sums, const Tile &a, const Tile &b, const Instruction &instruction) {
  int depth = a.bytes / 4;
  if (a.rows != sums.rows || b.bytes != sums.bytes || b.rows != depth)
    fail("the sizes of tiles differ", instruction.code);
  for (int m = 0; m < sums.rows; ++m)
    for (int n = 0; n < sums.bytes / 4; ++n) {
      float parts[2] = {0, 0};
      for (int k = 0; k < depth; ++k)
        for (int i = 0; i < 2; ++i)
          parts[i] = flush(std::fma(widen(&a.data[m][4 * k + 2 * i]),
                                    widen(&b.data[k][4 * n + 2 * i]), parts[i]));
      float sum;
      memcpy(&sum, &sums.data[m][4 * n], sizeof sum);
      sum = flush(flush(sum) + flush(parts[0] + parts[1]));
      memcpy(&sums.data[m][4 * n], &sum, sizeof sum);
    }
}

/// Executes the instruction if it is an AMX instruction. Returns whether it is.
bool execute(const Instruction &instruction) {
  enum { NONE, P66, PF3, PF2 };
  if (!instruction.isVex())
    return false;
  int prefix = instruction.prefix();
  if (instruction.opcode() == 0x49 && prefix == NONE) {
    if (instruction.hasMemory())
      configure(instruction);
    else
      state = State();
    return true;
  }
  if (instruction.opcode() == 0x49 && prefix == PF2 && !instruction.hasMemory()) {
    Tile &tile = use(instruction.reg(), instruction);
    memset(tile.data, 0, sizeof tile.data);
    return true;
  }
  if (instruction.opcode() == 0x4b && prefix != NONE && instruction.hasMemory()) {
    Tile &tile = use(instruction.reg(), instruction);
    auto [base, stride] = instruction.address();
    if (prefix != PF3)
      memset(tile.data, 0, sizeof tile.data);
    for (int i = 0; i < tile.rows; ++i)
      if (prefix == PF3)
        memcpy(base + i * stride, tile.data[i], tile.bytes);
      else
        memcpy(tile.data[i], base + i * stride, tile.bytes);
    return true;
  }
  if (instruction.opcode() == 0x5c && prefix == PF3 && !instruction.hasMemory()) {
    multiply(use(instruction.reg(), instruction), use(instruction.rm(), instruction),
             use(instruction.vvvv(), instruction), instruction);
    return true;
  }
  return false;
}

void onIllegal(int, siginfo_t *, void *context) {
  gregset_t &registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
  Instruction instruction(reinterpret_cast<const uint8_t *>(registers[REG_RIP]), registers);
  if (!execute(instruction))
    fail("an instruction that this CPU lacks", instruction.code);
  registers[REG_RIP] += instruction.length();
}

} // namespace

extern "C" {
const char *__real_attnrt_cpu_lacks(const char *features, size_t *length);

/// Returns the first feature that the CPU lacks and that is not an AMX feature, or null. Also installs the handler of
/// SIGILL here, because LLVM replaces handlers that are installed before main(), and because programs call this
/// function before they call a library.
const char *__wrap_attnrt_cpu_lacks(const char *features, size_t *length) {
  struct sigaction action = {};
  action.sa_sigaction = onIllegal;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGILL, &action, nullptr);
  while (const char *missing = __real_attnrt_cpu_lacks(features, length)) {
    if (strncmp(missing, "amx-", 4) != 0)
      return missing;
    features = missing + *length;
    features += *features == ' ';
  }
  return nullptr;
}
}
