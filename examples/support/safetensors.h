//===- safetensors.h - read named weights ------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   u64, little endian: bytes of the header
//   {"name": {"dtype": "F32", "shape": [192, 64], "data_offsets": [0, 49152]}, ...}
//   data, offsets counted from here
//
//===----------------------------------------------------------------------===//

#ifndef EXAMPLE_SAFETENSORS_H
#define EXAMPLE_SAFETENSORS_H

#include "tensor.h"

#include <cstdlib>
#include <map>

/// Reads the float32 weights that attnc writes beside a library. Of JSON it takes what the format
/// needs: objects, strings without escapes, whole numbers.
class SafetensorsReader {
public:
  explicit SafetensorsReader(const std::string &path) : path(path), file(path, std::ios::binary) {}

  std::map<std::string, Tensor> read() {
    if (!file)
      fail("expected a file that can be opened");
    unsigned char length[8] = {};
    file.read(reinterpret_cast<char *>(length), 8);
    uint64_t size = 0;
    for (int i = 7; i >= 0; --i)
      size = size << 8 | length[i];
    if (!file || size > 1 << 24)
      fail("expected a header under 16 MiB");
    header.resize(size);
    if (!file.read(header.data(), size))
      fail("expected " + std::to_string(size) + " bytes of header, got fewer");

    std::map<std::string, Tensor> weights;
    forEachMember([&](const std::string &name) {
      if (name == "__metadata__")
        return forEachMember([&](const std::string &) { string(); });
      weights.emplace(name, tensor(8 + size));
    });
    return weights;
  }

private:
  [[noreturn]] void fail(const std::string &message) {
    throw std::runtime_error(path + ": " + message);
  }

  char peek() {
    while (next < header.size() && std::string(" \t\r\n").find(header[next]) != std::string::npos)
      ++next;
    return next < header.size() ? header[next] : '\0';
  }
  bool accept(char c) { return peek() == c && ++next; }
  void expect(char c) {
    if (!accept(c))
      fail(std::string("expected '") + c + "' at byte " + std::to_string(8 + next));
  }
  std::string string() {
    expect('"');
    size_t end = header.find_first_of("\"\\", next);
    if (end == std::string::npos || header[end] == '\\')
      fail("expected a string without escapes at byte " + std::to_string(8 + next));
    std::string text = header.substr(next, end - next);
    next = end + 1;
    return text;
  }
  std::vector<int64_t> numbers() {
    std::vector<int64_t> result;
    expect('[');
    while (!accept(']')) {
      if (!result.empty())
        expect(',');
      peek();
      char *end;
      result.push_back(std::strtoll(header.c_str() + next, &end, 10));
      if (end == header.c_str() + next)
        fail("expected a number at byte " + std::to_string(8 + next));
      next = end - header.c_str();
    }
    return result;
  }
  template <class Member> void forEachMember(Member member) {
    expect('{');
    for (bool first = true; !accept('}'); first = false) {
      if (!first)
        expect(',');
      std::string name = string();
      expect(':');
      member(name);
    }
  }

  Tensor tensor(uint64_t dataBegin) {
    std::string dtype;
    std::vector<int64_t> shape, offsets;
    forEachMember([&](const std::string &key) {
      if (key == "dtype")
        dtype = string();
      else
        (key == "shape" ? shape : offsets) = numbers();
    });
    if (dtype != "F32")
      fail("expected dtype F32, got " + dtype);
    if (offsets.size() != 2 ||
        offsets[1] - offsets[0] != Tensor::count(shape) * int64_t(sizeof(float)))
      fail("expected data_offsets that fit the shape");
    file.seekg(dataBegin + offsets[0]);
    return readElements(file, std::move(shape), path);
  }

  std::string path, header;
  std::ifstream file;
  size_t next = 0;
};

/// Named tensors as attn_weights_create takes them.
class NamedTensors {
public:
  explicit NamedTensors(std::map<std::string, Tensor> weights) : weights(std::move(weights)) {
    views.reserve(this->weights.size());
    for (auto &[name, tensor] : this->weights) {
      nameList.push_back(name.c_str());
      tensorList.push_back(&views.emplace_back(tensor.view()));
    }
  }
  const char *const *names() const { return nameList.data(); }
  const DLTensor *const *tensors() const { return tensorList.data(); }
  int32_t count() const { return int32_t(nameList.size()); }

private:
  std::map<std::string, Tensor> weights;
  std::vector<DLTensor> views;
  std::vector<const char *> nameList;
  std::vector<const DLTensor *> tensorList;
};

#endif // EXAMPLE_SAFETENSORS_H
