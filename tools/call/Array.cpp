//===- Array.cpp - arrays, and their .npy files ---------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Format: "\x93NUMPY", version, the length of a header, the header (a Python literal), the data.
// Files are not trusted: the reader matches the header word by word, and the data must have exactly
// the size that the header states.
//
//===----------------------------------------------------------------------===//

#include "tools/call/Array.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

using namespace attn;

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files and arrays have the same order");

static constexpr std::string_view kMagic = "\x93NUMPY";

namespace {
struct ElementType {
  const char *name, *npy;
  uint8_t code, bits;
};
using File = std::unique_ptr<FILE, int (*)(FILE *)>;
} // namespace

static constexpr ElementType kTypes[] = {
#define ELEMENT_TYPE(name, safetensors, npy, c, code, bits) {name, npy, code, bits},
#include "support/ElementTypes.def"
};

static const ElementType *findType(const Array &array) {
  for (const ElementType &type : kTypes)
    if (type.code == array.code && type.bits == array.bits)
      return &type;
  return nullptr;
}

const char *Array::getTypeName() const {
  const ElementType *type = findType(*this);
  return type ? type->name : nullptr;
}

int64_t Array::getNumElements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

template <typename T> static T read(const char *bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

static double fromHalf(uint16_t bits) {
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double magnitude = exponent == 31  ? (mantissa ? NAN : INFINITY)
                     : exponent == 0 ? std::ldexp(mantissa, -24)
                                     : std::ldexp(1024 + mantissa, exponent - 25);
  return std::copysign(magnitude, bits >> 15 ? -1 : 1);
}

static double fromBFloat(uint16_t bits) {
  uint32_t word = uint32_t(bits) << 16;
  return read<float>(reinterpret_cast<const char *>(&word));
}

uint16_t attn::toBFloat(float value) {
  uint32_t bits = read<uint32_t>(reinterpret_cast<const char *>(&value));
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

uint16_t attn::toHalf(float value) {
  // The distance between neighbours is 2^(exponent - 10), and 2^-24 below the least normal number.
  int exponent = value == 0 ? -14 : std::max(std::ilogb(value), -14);
  double steps = std::nearbyint(std::ldexp(std::abs(double(value)), 10 - exponent));
  // `steps` contains the leading bit of a normal number; a carry goes on into the exponent.
  int bits = std::min((exponent + 14) * 1024 + int(steps), 31 * 1024);
  return bits | (std::signbit(value) ? 1 << 15 : 0);
}

double Array::at(int64_t i) const {
  const char *element = data.data() + i * (bits / 8);
  switch (code << 8 | bits) {
  case 2 << 8 | 64:
    return read<double>(element);
  case 2 << 8 | 32:
    return read<float>(element);
  case 2 << 8 | 16:
    return fromHalf(read<uint16_t>(element));
  case 4 << 8 | 16:
    return fromBFloat(read<uint16_t>(element));
  case 0 << 8 | 64:
    return read<int64_t>(element);
  case 0 << 8 | 32:
    return read<int32_t>(element);
  case 0 << 8 | 16:
    return read<int16_t>(element);
  case 0 << 8 | 8:
    return read<int8_t>(element);
  default:
    return read<uint8_t>(element);
  }
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

static bool startsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

/// Drops the characters of `set` in front.
static std::string_view skip(std::string_view text, const char *set) {
  size_t first = text.find_first_not_of(set);
  return first == text.npos ? std::string_view() : text.substr(first);
}

/// What follows `'key':` in the header.
static std::string_view valueOf(std::string_view header, const char *key) {
  std::string name = format("'%s':", key);
  size_t at = header.find(name);
  return at == header.npos ? std::string_view() : skip(header.substr(at + name.size()), " ");
}

/// Reads a number at the start of `text`, and drops it.
static bool consumeInteger(std::string_view &text, int64_t &value) {
  size_t digits = 0;
  value = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits)
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, text[digits] - '0', &value))
      return false;
  text = text.substr(digits);
  return digits > 0;
}

static Failure cannot(const char *what, const std::string &path) {
  return ATTN_FAIL("cannot %s '%s': %s", what, path.c_str(), std::strerror(errno));
}

static Failure readBytes(const std::string &path, std::vector<char> &bytes) {
  File file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file)
    return cannot("read", path);
  constexpr size_t kChunk = 1 << 20;
  size_t count = kChunk;
  while (count == kChunk) {
    size_t size = bytes.size();
    bytes.resize(size + kChunk);
    count = std::fread(bytes.data() + size, 1, kChunk, file.get());
    bytes.resize(size + count);
  }
  return std::ferror(file.get()) ? cannot("read", path) : Failure();
}

Failure attn::readNpy(const std::string &path, Array &array) {
  std::vector<char> content;
  if (Failure failure = readBytes(path, content))
    return failure;
  const char *file = path.c_str();
  std::string_view bytes(content.data(), content.size());
  if (!startsWith(bytes, kMagic) || bytes.size() < kMagic.size() + 4)
    return ATTN_FAIL("'%s': expected a .npy file, got other bytes", file);
  bytes.remove_prefix(kMagic.size());
  bool isLong = bytes[0] >= 2;
  size_t width = isLong ? 4 : 2;
  bytes.remove_prefix(2);
  if (bytes.size() < width)
    return ATTN_FAIL("'%s': expected a header, got the end of the file", file);
  size_t length = isLong ? read<uint32_t>(bytes.data()) : read<uint16_t>(bytes.data());
  bytes.remove_prefix(width);
  if (length > bytes.size())
    return ATTN_FAIL("'%s': expected a header of %zu bytes, got %zu", file, length, bytes.size());
  std::string_view header = bytes.substr(0, length);
  bytes.remove_prefix(length);

  std::string_view type = valueOf(header, "descr");
  const ElementType *known = nullptr;
  for (const ElementType &candidate : kTypes)
    if (startsWith(type, format("'%s'", candidate.npy)))
      known = &candidate;
  if (!known)
    return ATTN_FAIL("'%s': expected a little-endian number type, got %s", file,
                     std::string(type.substr(0, type.find(','))).c_str());
  array = {known->code, known->bits, {}, {}};
  if (!startsWith(valueOf(header, "fortran_order"), "False"))
    return ATTN_FAIL("'%s': expected C order, got Fortran order", file);
  std::string_view shape = valueOf(header, "shape");
  if (!startsWith(shape, "("))
    return ATTN_FAIL("'%s': expected a shape", file);
  shape.remove_prefix(1);
  int64_t expected = array.bits / 8;
  while (true) {
    shape = skip(shape, " ,");
    if (startsWith(shape, ")"))
      break;
    int64_t size;
    if (!consumeInteger(shape, size) || __builtin_mul_overflow(expected, size, &expected))
      return ATTN_FAIL("'%s': expected sizes in its shape", file);
    array.shape.push_back(size);
  }
  if (uint64_t(expected) != bytes.size())
    return ATTN_FAIL("'%s': expected %lld bytes of data, got %zu", file, (long long)expected,
                     bytes.size());
  array.data.assign(bytes.begin(), bytes.end());
  return {};
}

Failure attn::writeNpy(const std::string &path, const Array &array) {
  const ElementType *type = findType(array);
  if (!type)
    return ATTN_FAIL("'%s': expected an element type that .npy has", path.c_str());
  std::string header = format("{'descr': '%s', 'fortran_order': False, 'shape': (", type->npy);
  for (int64_t size : array.shape)
    header += std::to_string(size) + ", ";
  header += "), }";
  size_t used = kMagic.size() + 4 + header.size() + 1; // the line ends at a multiple of 64
  header.append((64 - used % 64) % 64, ' ');
  header += '\n';
  std::string bytes(kMagic);
  bytes += {'\1', '\0', char(header.size() & 255), char(header.size() >> 8)};
  bytes += header;

  File file(std::fopen(path.c_str(), "wb"), std::fclose);
  if (!file)
    return cannot("write", path);
  if (std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size() ||
      std::fwrite(array.data.data(), 1, array.data.size(), file.get()) != array.data.size() ||
      std::fclose(file.release()))
    return cannot("write", path);
  return {};
}
