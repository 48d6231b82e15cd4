//===- Weights.cpp - the data of parameters and buffers --------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/Weights.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace attn;
using namespace attn::pt2;

Expected<Weights> Weights::open(const Archive &archive) {
  Weights weights(archive);
  struct Folder {
    StringRef path, config;
  };
  for (Folder folder : {Folder{"data/weights/", "model_weights_config.json"},
                        Folder{"data/constants/", "model_constants_config.json"}}) {
    std::string entry = (folder.path + folder.config).str();
    // A module without constants, or without weights, may lack the folder; a weight that is missing
    // is reported.
    if (!archive.contains(entry))
      continue;
    auto text = archive.read(entry);
    if (!text)
      return text.takeError();
    auto payloads = parsePayloads((*text)->getBuffer(), entry);
    if (!payloads)
      return payloads.takeError();
    for (auto &[name, payload] : *payloads) {
      payload.path = (folder.path + payload.path).str();
      weights.payloads.try_emplace(name, std::move(payload));
    }
  }
  return weights;
}

/// True if elements follow each other in row-major order from the start of the data. Of no elements, all orders are one.
static bool isCompact(const TensorMeta &meta) {
  if (llvm::is_contained(meta.sizes, Size(0)))
    return true;
  if (meta.strides.size() != meta.sizes.size() || meta.storageOffset != Size(0))
    return false;
  Size compact = 1;
  for (auto [size, stride] : llvm::zip(llvm::reverse(meta.sizes), llvm::reverse(meta.strides))) {
    if (!size.isOne() && stride != compact)
      return false;
    std::optional<Size> next = multiply(compact, size);
    if (!next)
      return false;
    compact = *next;
  }
  return true;
}

Expected<NamedTensor> Weights::load(StringRef name, const TensorMeta &meta,
                                    mlir::MLIRContext &context) {
  auto invalid = [&](auto &&...message) {
    return createStringError(formatv("weight '{0}': ", name).str() + formatv(message...).str());
  };
  auto found = payloads.find(name.str());
  if (found == payloads.end())
    return invalid("expected its data in the file");
  const Payload &payload = found->second;
  if (payload.isPickled || !payload.meta)
    return invalid("expected raw data, got a pickle, which attn never reads");
  const TensorMeta &stored = *payload.meta;
  if (stored.dtype != meta.dtype || stored.isComplex != meta.isComplex ||
      stored.sizes != meta.sizes)
    return invalid("expected {0}{1} as in the graph, got {2}{3}", str(meta.dtype), str(meta.sizes),
                   str(stored.dtype), str(stored.sizes));
  if (!isCompact(stored))
    return invalid("expected row-major data without gaps, got strides {0} at offset {1}",
                   str(stored.strides), stored.storageOffset.str());

  // Its data is a user's, who knows signs.
  mlir::Type type = meta.dtype == DType::U8
                        ? mlir::IntegerType::get(&context, 8, mlir::IntegerType::Unsigned)
                        : elementType(meta.dtype, &context);
  NamedTensor tensor{name.str(), type, {}, {}};
  int64_t bytes = byteSize(meta.dtype);
  for (const Size &size : meta.passedSizes()) {
    std::optional<int64_t> constant = size.constant();
    if (!constant || MulOverflow(bytes, *constant, bytes))
      return invalid("expected known sizes, got {0}", str(meta.sizes));
    tensor.shape.push_back(*constant);
  }
  std::shared_ptr<const MemoryBuffer> &data = loaded[payload.path];
  if (!data) {
    auto read = archive.read(payload.path);
    if (!read)
      return invalid("{0}", toString(read.takeError()));
    data = std::move(*read);
  }
  if (data->getBufferSize() != uint64_t(bytes))
    return invalid("expected {0} bytes for {1}{2}, got {3}", bytes, str(meta.dtype),
                   str(meta.sizes), data->getBufferSize());
  tensor.bytes = data;
  return tensor;
}
