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
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

using namespace attn;

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files and arrays have one byte order");

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

uint16_t attn::toHalf(float value) { // `value` is finite
  // The distance between neighbours is 2^(exponent - 10), and 2^-24 below the least normal number.
  int exponent = value == 0 ? -14 : std::max(std::ilogb(value), -14);
  double steps = std::nearbyint(std::ldexp(std::abs(double(value)), 10 - exponent));
  // `steps` contains the leading bit of a normal number, and a carry of the rounding increments the exponent.
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

/// Drops the characters of `set` at the start of `text`.
static std::string_view skip(std::string_view text, const char *set) {
  size_t first = text.find_first_not_of(set);
  return first == text.npos ? std::string_view() : text.substr(first);
}

/// The text that follows `'key':` in the header.
static std::string_view valueOf(std::string_view header, const char *key) {
  std::string name = format("'%s':", key);
  size_t at = header.find(name);
  return at == header.npos ? std::string_view() : skip(header.substr(at + name.size()), " ");
}

/// Reads a number at the start of `text`, and drops it.
static bool consumeInteger(std::string_view &text, int64_t &number) {
  auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(last - text.data());
  return error == std::errc() && number >= 0;
}

static Failure cannot(const char *what, const std::string &path) {
  return refuse("cannot %s '%s': %s", what, path.c_str(), std::strerror(errno));
}

/// Reads up to `count` bytes. Allocates memory only for bytes that the file has, because `count` may come from a
/// hostile file.
template <typename Bytes> static Bytes readBytes(FILE *file, size_t count) {
  constexpr size_t kChunk = 1 << 20;
  Bytes bytes;
  for (size_t size = 0; size < count;) {
    size_t wanted = std::min(count - size, std::max(kChunk, size));
    bytes.resize(size + wanted);
    size_t got = std::fread(bytes.data() + size, 1, wanted, file);
    bytes.resize(size += got);
    if (got < wanted)
      break;
  }
  return bytes;
}

Failure attn::readNpy(const std::string &path, Array &array) {
  File handle(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!handle)
    return cannot("read", path);
  const char *file = path.c_str();
  auto prefix = readBytes<std::string>(handle.get(), kMagic.size() + 2);
  if (std::ferror(handle.get()))
    return cannot("read", path);
  if (!startsWith(prefix, kMagic) || prefix.size() < kMagic.size() + 2)
    return refuse("'%s': expected a .npy file, got other bytes", file);
  bool isLong = prefix[kMagic.size()] >= 2;
  auto numbers = readBytes<std::string>(handle.get(), isLong ? 4 : 2);
  if (numbers.size() < (isLong ? 4 : 2))
    return refuse("'%s': expected a header, got the end of the file", file);
  size_t length = isLong ? read<uint32_t>(numbers.data()) : read<uint16_t>(numbers.data());
  auto text = readBytes<std::string>(handle.get(), length);
  if (length > text.size())
    return refuse("'%s': expected a header of %zu bytes, got %zu", file, length, text.size());
  std::string_view header = text;

  std::string_view type = valueOf(header, "descr");
  const ElementType *known = nullptr;
  for (const ElementType &candidate : kTypes)
    if (startsWith(type, format("'%s'", candidate.npy)))
      known = &candidate;
  if (!known)
    return refuse("'%s': expected a little-endian number type, got %s", file,
                  std::string(type.substr(0, type.find(','))).c_str());
  array = {known->code, known->bits, {}, {}};
  if (!startsWith(valueOf(header, "fortran_order"), "False"))
    return refuse("'%s': expected C order, got Fortran order", file);
  std::string_view shape = valueOf(header, "shape");
  if (!startsWith(shape, "("))
    return refuse("'%s': expected a shape", file);
  shape.remove_prefix(1);
  int64_t expected = array.bits / 8;
  while (true) {
    shape = skip(shape, " ,");
    if (startsWith(shape, ")"))
      break;
    int64_t size;
    if (!consumeInteger(shape, size) || __builtin_mul_overflow(expected, size, &expected))
      return refuse("'%s': expected sizes in its shape", file);
    array.shape.push_back(size);
  }
  array.data = readBytes<std::vector<char>>(handle.get(), expected);
  if (std::ferror(handle.get()))
    return cannot("read", path);
  if (array.data.size() < uint64_t(expected))
    return refuse("'%s': expected %lld bytes of data, got %zu", file, (long long)expected,
                  array.data.size());
  if (std::fgetc(handle.get()) != EOF)
    return refuse("'%s': expected %lld bytes of data, got more", file, (long long)expected);
  return {};
}

Failure attn::writeNpy(const std::string &path, const Array &array) {
  const ElementType *type = findType(array);
  if (!type)
    return refuse("'%s': expected an element type that .npy files support", path.c_str());
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
      (!array.data.empty() &&
       std::fwrite(array.data.data(), 1, array.data.size(), file.get()) != array.data.size()) ||
      std::fclose(file.release()))
    return cannot("write", path);
  return {};
}
