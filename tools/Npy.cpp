//===- Npy.cpp - read and write .npy files --------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Format: "\x93NUMPY", version, the length of a header, the header (a Python literal), the data.
// Files are not trusted: the reader matches the header word by word, and the data must have exactly
// the size that the header states.
//
//===----------------------------------------------------------------------===//

#include "tools/Npy.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace attn;

static constexpr StringLiteral kMagic = "\x93NUMPY";

const DataType *Array::getType() const {
  const DataType *type = find_if(DataType::all(), [&](const DataType &candidate) {
    return candidate.code == code && candidate.bits == bits;
  });
  return type == DataType::all().end() ? nullptr : type;
}

int64_t Array::getNumElements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

double Array::at(int64_t i) const {
  const char *element = data.data() + i * (bits / 8);
  auto as = [&](auto zero) {
    return support::endian::read<decltype(zero), llvm::endianness::little>(element);
  };
  switch (code << 8 | bits) {
  case 2 << 8 | 64:
    return llvm::bit_cast<double>(as(uint64_t()));
  case 2 << 8 | 32:
    return llvm::bit_cast<float>(as(uint32_t()));
  case 2 << 8 | 16:
    return APFloat(APFloat::IEEEhalf(), APInt(16, as(uint16_t()))).convertToDouble();
  case 4 << 8 | 16:
    return llvm::bit_cast<float>(uint32_t(as(uint16_t())) << 16);
  case 0 << 8 | 64:
    return as(int64_t());
  case 0 << 8 | 32:
    return as(int32_t());
  case 0 << 8 | 16:
    return as(int16_t());
  case 0 << 8 | 8:
    return as(int8_t());
  default:
    return static_cast<uint8_t>(*element);
  }
}

static Error bad(StringRef path, const Twine &what) {
  return createStringError("'" + path + "': " + what);
}

/// The value after `'key':` in the header.
static StringRef valueOf(StringRef header, StringRef key) {
  size_t at = header.find(("'" + key + "':").str());
  return at == StringRef::npos ? StringRef() : header.substr(at + key.size() + 3).ltrim();
}

Expected<Array> attn::readNpy(StringRef path) {
  auto file = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return createStringError(file.getError(),
                             "cannot read '" + path + "': " + file.getError().message());
  StringRef bytes = (*file)->getBuffer();
  if (!bytes.consume_front(kMagic) || bytes.size() < 4)
    return bad(path, "expected a .npy file, got other bytes");
  bool isLong = bytes[0] >= 2;
  bytes = bytes.drop_front(2);
  size_t width = isLong ? 4 : 2;
  if (bytes.size() < width)
    return bad(path, "expected a header, got the end of the file");
  size_t length =
      isLong ? support::endian::read32le(bytes.data()) : support::endian::read16le(bytes.data());
  bytes = bytes.drop_front(width);
  if (length > bytes.size())
    return bad(path,
               "expected a header of " + Twine(length) + " bytes, got " + Twine(bytes.size()));
  StringRef header = bytes.take_front(length);
  bytes = bytes.drop_front(length);

  Array array;
  StringRef type = valueOf(header, "descr");
  const DataType *known = find_if(DataType::all(), [&](const DataType &candidate) {
    return type.starts_with(("'" + candidate.npy + "'").str());
  });
  if (known == DataType::all().end())
    return bad(path, "expected a little-endian number type, got " +
                         type.take_until([](char c) { return c == ','; }));
  array.code = known->code;
  array.bits = known->bits;
  if (!valueOf(header, "fortran_order").starts_with("False"))
    return bad(path, "expected C order, got Fortran order");
  StringRef shape = valueOf(header, "shape");
  if (!shape.consume_front("("))
    return bad(path, "expected a shape");
  int64_t expected = array.bits / 8;
  while (true) {
    shape = shape.ltrim(" ,");
    if (shape.starts_with(")"))
      break;
    int64_t size;
    if (shape.consumeInteger(10, size) || size < 0 || MulOverflow(expected, size, expected))
      return bad(path, "expected sizes in its shape");
    array.shape.push_back(size);
  }
  if (uint64_t(expected) != bytes.size())
    return bad(path, "expected " + Twine(expected) + " bytes of data, got " + Twine(bytes.size()));
  array.data.assign(bytes.begin(), bytes.end());
  return array;
}

Error attn::writeNpy(StringRef path, const Array &array) {
  const DataType *type = array.getType();
  if (!type)
    return bad(path, "expected an element type that .npy has");
  std::string header;
  raw_string_ostream os(header);
  os << "{'descr': '" << type->npy << "', 'fortran_order': False, 'shape': (";
  for (int64_t size : array.shape)
    os << size << ", ";
  os << "), }";
  size_t prefix = kMagic.size() + 4;
  header.append(alignTo(prefix + header.size() + 1, 64) - prefix - header.size() - 1, ' ');
  header += '\n';
  std::error_code error;
  raw_fd_ostream out(path, error);
  if (error)
    return createStringError(error, "cannot write '" + path + "': " + error.message());
  out << kMagic << '\1' << '\0';
  char length[2];
  support::endian::write16le(length, header.size());
  out.write(length, 2);
  out << header;
  out.write(array.data.data(), array.data.size());
  out.close();
  if ((error = out.error())) {
    out.clear_error(); // otherwise the destructor ends the program
    return createStringError(error, "cannot write '" + path + "': " + error.message());
  }
  return Error::success();
}
