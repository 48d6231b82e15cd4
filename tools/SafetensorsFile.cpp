//===- SafetensorsFile.cpp - named tensors from a file --------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "tools/SafetensorsFile.h"
#include "codegen/emit/Interface.h"
#include "support/Json.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;
using namespace attn;

Expected<std::vector<std::pair<std::string, Array>>> attn::readSafetensors(StringRef path) {
  auto bad = [&](const Twine &what) { return createStringError("'" + path + "': " + what); };
  auto file = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return createStringError(file.getError(),
                             "cannot read '" + path + "': " + file.getError().message());
  StringRef bytes = (*file)->getBuffer();
  if (bytes.size() < 8)
    return bad("expected a safetensors file, got " + Twine(bytes.size()) + " bytes");
  uint64_t length = support::endian::read64le(bytes.data());
  bytes = bytes.drop_front(8);
  if (length > bytes.size())
    return bad("expected a header of " + Twine(length) + " bytes, got " + Twine(bytes.size()));
  Expected<json::Value> header = parseJSON(bytes.take_front(length));
  bytes = bytes.drop_front(length);
  if (!header)
    return bad("in its header: " + toString(header.takeError()));
  const json::Object *tensors = header->getAsObject();
  if (!tensors)
    return bad("expected a JSON object as header");

  std::vector<std::pair<std::string, Array>> result;
  for (const auto &[key, value] : *tensors) {
    if (key == "__metadata__")
      continue;
    StringRef name = key;
    const json::Object *tensor = value.getAsObject();
    const json::Array *shape = tensor ? tensor->getArray("shape") : nullptr;
    const json::Array *offsets = tensor ? tensor->getArray("data_offsets") : nullptr;
    std::optional<StringRef> dtype = tensor ? tensor->getString("dtype") : std::nullopt;
    if (!shape || !offsets || !dtype || offsets->size() != 2)
      return bad("expected dtype, shape and data_offsets of '" + name + "'");
    const DataType *type =
        find_if(DataType::all(), [&](const DataType &type) { return type.safetensors == *dtype; });
    if (type == DataType::all().end())
      return bad("expected a known dtype of '" + name + "', got " + *dtype);
    Array array;
    array.code = type->code;
    array.bits = type->bits;
    int64_t expected = array.bits / 8;
    for (const json::Value &size : *shape) {
      std::optional<int64_t> extent = size.getAsInteger();
      if (!extent || *extent < 0 || MulOverflow(expected, *extent, expected))
        return bad("expected sizes in the shape of '" + name + "'");
      array.shape.push_back(*extent);
    }
    std::optional<int64_t> begin = (*offsets)[0].getAsInteger(), end = (*offsets)[1].getAsInteger();
    if (!begin || !end || *begin < 0 || *end < *begin || uint64_t(*end) > bytes.size() ||
        *end - *begin != expected)
      return bad("expected " + Twine(expected) + " bytes of '" + name + "' inside the file");
    array.data.assign(bytes.begin() + *begin, bytes.begin() + *end);
    result.emplace_back(name.str(), std::move(array));
  }
  return result;
}
