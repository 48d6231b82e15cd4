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
    // The file of a module without constants or without weights may lack the folder. load() reports a missing weight.
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

/// The greatest number of bytes of a weight that is a view with more elements than its data, such as the result of
/// expand(). Without this limit, a small file could fill the memory.
static constexpr int64_t kMaxViewBytes = int64_t(1) << 28;

/// Returns the elements of a tensor in row-major order. `data` contains them with the strides and the offset of
/// `stored`. Returns null if an element is not inside `data`.
static std::shared_ptr<const MemoryBuffer> inOrder(const std::shared_ptr<const MemoryBuffer> &data,
                                                   const TensorMeta &stored,
                                                   ArrayRef<int64_t> shape, int64_t elementBytes,
                                                   int64_t bytes) {
  SmallVector<int64_t> strides;
  for (const Size &stride : stored.strides)
    strides.push_back(stride.constant().value_or(-1));
  std::optional<int64_t> offset = stored.storageOffset.constant();
  int64_t count = data->getBufferSize() / elementBytes, last = offset.value_or(-1);
  if (last < 0 || strides.size() != shape.size())
    return nullptr;
  for (auto [size, stride] : zip_equal(shape, strides)) {
    int64_t reach;
    if (stride < 0 || MulOverflow(size - 1, stride, reach) || AddOverflow(last, reach, last))
      return nullptr;
  }
  if (last >= count)
    return nullptr;
  bool isCompact = *offset == 0 && int64_t(data->getBufferSize()) == bytes;
  int64_t compact = 1;
  for (auto [size, stride] : reverse(zip_equal(shape, strides))) {
    isCompact &= size == 1 || stride == compact;
    compact *= size;
  }
  if (isCompact)
    return data;
  auto ordered = WritableMemoryBuffer::getNewUninitMemBuffer(bytes);
  if (!ordered)
    return nullptr;
  char *to = ordered->getBufferStart();
  SmallVector<int64_t> index(shape.size(), 0);
  for (int64_t at = *offset, left = compact; left != 0; --left) {
    to = std::copy_n(data->getBufferStart() + at * elementBytes, elementBytes, to);
    for (size_t dim = shape.size(); dim-- > 0;) {
      at += strides[dim];
      if (++index[dim] != shape[dim])
        break;
      at -= shape[dim] * strides[dim];
      index[dim] = 0;
    }
  }
  return ordered;
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

  // Users see the type of a weight, so this type says whether integers are unsigned, unlike the types in the module.
  mlir::Type type = meta.dtype == DType::U8
                        ? mlir::IntegerType::get(&context, 8, mlir::IntegerType::Unsigned)
                        : elementType(meta.dtype, &context);
  NamedTensor tensor{name.str(), type, {}, {}};
  int64_t elementBytes = byteSize(meta.dtype) * (meta.isComplex ? 2 : 1), bytes = elementBytes;
  SmallVector<int64_t> shape;
  for (const Size &size : meta.sizes) {
    std::optional<int64_t> constant = size.constant();
    if (!constant || MulOverflow(bytes, *constant, bytes))
      return invalid("expected known sizes, got {0}", str(meta.sizes));
    shape.push_back(*constant);
  }
  tensor.shape = shape;
  if (meta.isComplex)
    tensor.shape.push_back(2);
  std::shared_ptr<const MemoryBuffer> &data = loaded[payload.path];
  if (!data) {
    auto read = archive.read(payload.path);
    if (!read)
      return invalid("{0}", toString(read.takeError()));
    data = std::move(*read);
  }
  if (uint64_t(bytes) > data->getBufferSize() && bytes > kMaxViewBytes)
    return invalid("expected at most {0} bytes for a view of {1} bytes, got {2}", kMaxViewBytes,
                   data->getBufferSize(), bytes);
  tensor.bytes = bytes == 0 ? std::shared_ptr<const MemoryBuffer>(MemoryBuffer::getMemBuffer(""))
                            : inOrder(data, stored, shape, elementBytes, bytes);
  if (!tensor.bytes)
    return invalid("expected {0}{1} with strides {2} and offset {3} inside its data, got {4} bytes",
                   str(meta.dtype), str(meta.sizes), str(stored.strides),
                   stored.storageOffset.str(), data->getBufferSize());
  return tensor;
}

std::optional<std::pair<int64_t, int64_t>> attn::pt2::endsOf(const NamedTensor &tensor) {
  auto type = dyn_cast<mlir::IntegerType>(tensor.elementType);
  size_t width = type ? divideCeil(type.getWidth(), 8) : 0;
  if (width == 0 || tensor.bytes->getBufferSize() < width)
    return std::nullopt;
  bool isUnsigned = type.isUnsigned() || type.getWidth() == 1;
  auto at = [&](size_t i) {
    APInt element(8 * width, 0);
    LoadIntFromMemory(element, tensor.bytes->getBuffer().bytes_begin() + i * width, width);
    return isUnsigned ? int64_t(element.getZExtValue()) : element.getSExtValue();
  };
  std::pair ends(at(0), at(0));
  for (size_t i = 1; i < tensor.bytes->getBufferSize() / width; ++i)
    ends = {std::min(ends.first, at(i)), std::max(ends.second, at(i))};
  return ends;
}
