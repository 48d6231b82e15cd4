//===- cpu.c - the features and the number of CPUs of this process --------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#define _GNU_SOURCE // CPU_COUNT

#include "internal.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined __x86_64__

#include <cpuid.h>
#include <sys/syscall.h>

/// The CPUID registers that contain the bits of features.
enum { LEAF1_ECX, LEAF7_EBX, LEAF7_ECX, LEAF7_EDX, LEAF7_1_EAX, EXTENDED_ECX, NUM_REGISTERS };

/// A feature of a CPU: its name in LLVM, its bit in a CPUID register, the register states that the operating system
/// must save (bits of XCR0), and the state that a process must request from Linux before it uses the feature, or 0.
typedef struct feature {
  const char *name;
  int cpuid, bit;
  uint32_t xcr0;
  int requested;
} feature;

/// Register states as bits of XCR0. AVX: the SSE and AVX registers. AVX512: also the mask registers, the upper halves
/// of ZMM0 to 15, and ZMM16 to 31. TILES: the SSE and AVX registers, and the configuration and the data of tiles.
/// TILE_DATA: the number of the bit for the data of tiles.
enum { AVX = 0x6, AVX512 = 0xe6, TILES = 0x60006, TILE_DATA = 18 };

static const feature features[] = {
    {"sse3", LEAF1_ECX, 0, 0, 0},
    {"ssse3", LEAF1_ECX, 9, 0, 0},
    {"cx16", LEAF1_ECX, 13, 0, 0},
    {"sse4.1", LEAF1_ECX, 19, 0, 0},
    {"sse4.2", LEAF1_ECX, 20, 0, 0},
    {"popcnt", LEAF1_ECX, 23, 0, 0},
    {"sahf", EXTENDED_ECX, 0, 0, 0},
    {"lzcnt", EXTENDED_ECX, 5, 0, 0},
    {"movbe", LEAF1_ECX, 22, 0, 0},
    {"xsave", LEAF1_ECX, 27, 0, 0}, // OSXSAVE: the operating system uses it
    {"avx", LEAF1_ECX, 28, AVX, 0},
    {"f16c", LEAF1_ECX, 29, AVX, 0},
    {"fma", LEAF1_ECX, 12, AVX, 0},
    {"bmi", LEAF7_EBX, 3, 0, 0},
    {"avx2", LEAF7_EBX, 5, AVX, 0},
    {"bmi2", LEAF7_EBX, 8, 0, 0},
    {"avx512f", LEAF7_EBX, 16, AVX512, 0},
    {"avx512dq", LEAF7_EBX, 17, AVX512, 0},
    {"avx512cd", LEAF7_EBX, 28, AVX512, 0},
    {"avx512bw", LEAF7_EBX, 30, AVX512, 0},
    {"avx512vl", LEAF7_EBX, 31, AVX512, 0},
    {"avx512vnni", LEAF7_ECX, 11, AVX512, 0},
    {"avx512bf16", LEAF7_1_EAX, 5, AVX512, 0},
    {"amx-bf16", LEAF7_EDX, 22, TILES, TILE_DATA},
    {"amx-tile", LEAF7_EDX, 24, TILES, TILE_DATA},
};

/// Requests `state`, the number of a bit of XCR0, from Linux. Returns whether this process may use it. Threads share
/// the permission.
static bool request(int state) {
  enum { ARCH_REQ_XCOMP_PERM = 0x1023 };
  return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, state) == 0;
}

static bool has(const feature *wanted) {
  uint32_t registers[NUM_REGISTERS] = {0}, a, b, c, d, xcr0 = 0;
  if (__get_cpuid(1, &a, &b, &c, &d))
    registers[LEAF1_ECX] = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
    registers[LEAF7_EBX] = b;
    registers[LEAF7_ECX] = c;
    registers[LEAF7_EDX] = d;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d))
      registers[LEAF7_1_EAX] = a;
  }
  if (__get_cpuid(0x80000001, &a, &b, &c, &d))
    registers[EXTENDED_ECX] = c;
  if (registers[LEAF1_ECX] & (1u << 27)) // OSXSAVE: xgetbv exists
    __asm__("xgetbv" : "=a"(xcr0), "=d"(d) : "c"(0));
  return (registers[wanted->cpuid] >> wanted->bit & 1) && !(wanted->xcr0 & ~xcr0) &&
         (!wanted->requested || request(wanted->requested));
}

#elif defined __aarch64__

#include <sys/auxv.h>

/// A feature of a CPU: its name in LLVM, and its bit in AT_HWCAP or AT_HWCAP2.
typedef struct feature {
  const char *name;
  unsigned long type;
  int bit;
} feature;

static const feature features[] = {
    {"neon", AT_HWCAP, 1},
    {"fullfp16", AT_HWCAP, 10}, // ASIMDHP
    {"fp16fml", AT_HWCAP, 23},  // ASIMDFHM
    {"bf16", AT_HWCAP2, 14},
};

static bool has(const feature *wanted) { return getauxval(wanted->type) >> wanted->bit & 1; }

#else
#error "expected x86-64 or aarch64: list the features of this architecture here"
#endif

const char *attnrt_cpu_lacks(const char *names, size_t *length) {
  for (; *names; names += *length + (names[*length] == ' ')) {
    bool found = false;
    *length = strcspn(names, " ");
    for (size_t i = 0; i < sizeof features / sizeof *features && !found; ++i)
      found = strlen(features[i].name) == *length && !memcmp(features[i].name, names, *length) &&
              has(&features[i]);
    if (!found)
      return names;
  }
  return NULL;
}

/// The number of CPUs, rounded up, to which control groups (cgroup version 2) limit the CPU time of this process.
/// INT64_MAX means no limit.
static int64_t quota(void) {
  static const char root[] = "/sys/fs/cgroup";
  char group[PATH_MAX - 64], path[PATH_MAX];
  FILE *file = fopen("/proc/self/cgroup", "re");
  if (!file)
    return INT64_MAX;
  // The file has no line that starts with 0 if the process is only in groups of version 1.
  int found = fscanf(file, "0::%4031[^\n]", group);
  fclose(file);
  if (found != 1)
    return INT64_MAX;

  int64_t cpus = INT64_MAX;
  // The limits of the group and of all its parents apply. In a container the path may be a path of
  // the host, which does not exist in the container: then only the limit of the root is found.
  for (char *end = group + strlen(group); end; end = strrchr(group, '/')) {
    *end = '\0';
    snprintf(path, sizeof path, "%s%s/cpu.max", root, group);
    file = fopen(path, "re");
    if (!file)
      continue;
    long long time, period;
    if (fscanf(file, "%lld %lld", &time, &period) == 2 && period > 0) {
      int64_t limit = (time + period - 1) / period;
      if (limit < cpus)
        cpus = limit;
    }
    fclose(file);
  }
  return cpus;
}

int64_t attnrt_cpu_count(void) {
  cpu_set_t set;
  // sched_getaffinity fails if the machine has more CPUs than the set has room for.
  bool known = sched_getaffinity(0, sizeof set, &set) == 0;
  int64_t cpus = known ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
  int64_t limit = quota();
  return cpus < limit ? cpus : limit;
}
