//===- Safetensors.cpp - write weights -------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   u64, little endian: the number of bytes in the header
//   header: JSON {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...},
//           spaces at its end
//   data:   the tensors without gaps, offsets counted from here
//
//===----------------------------------------------------------------------===//

#include "codegen/emit/Safetensors.h"

#include "codegen/emit/Interface.h"

#include "llvm/Support/EndianStream.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"

using namespace attn;
namespace json = llvm::json;

void attn::writeSafetensors(llvm::ArrayRef<Weight> weights, llvm::raw_ostream &out) {
  auto typeOf = [](const Weight &weight) { return DataType::get(weight.type.getElementType()); };
  // Write tensors of wide elements first. Because the header has a multiple of 8 bytes, every tensor is then aligned if
  // the file is mapped into memory.
  llvm::SmallVector<const Weight *> order;
  for (const Weight &weight : weights)
    order.push_back(&weight);
  llvm::sort(order, [&](const Weight *a, const Weight *b) {
    return std::make_pair(-int(typeOf(*a)->bits), a) < std::make_pair(-int(typeOf(*b)->bits), b);
  });

  std::string header;
  llvm::raw_string_ostream stream(header);
  json::OStream writer(stream);
  writer.object([&] {
    int64_t offset = 0;
    for (const Weight *weight : order)
      writer.attributeObject(weight->name, [&] {
        writer.attribute("dtype", typeOf(*weight)->safetensors);
        writer.attribute("shape", json::Array(weight->type.getShape()));
        int64_t begin = offset;
        offset += weight->data.size();
        writer.attribute("data_offsets", json::Array{begin, offset});
      });
  });
  header.resize(llvm::alignTo(header.size(), 8), ' ');
  llvm::support::endian::write<uint64_t>(out, header.size(), llvm::endianness::little);
  out << header;
  for (const Weight *weight : order)
    out.write(weight->data.data(), weight->data.size());
}
