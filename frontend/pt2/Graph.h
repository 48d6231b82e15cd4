//===- Graph.h - read the JSON of a .pt2 file --------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The structs follow torch's schema (torch/_export/serde/schema.py), without the parts that have no meaning outside
// torch.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_PT2_GRAPH_H
#define ATTN_FRONTEND_PT2_GRAPH_H

#include "dialect/Size.h"
#include "frontend/graph/DType.h"

#include "llvm/Support/Error.h"

#include <memory>

namespace attn::pt2 {

using namespace graph;
using attn::kMaxDim;
using attn::Size;
using attn::Sizes;

/// The greatest rank of a tensor.
constexpr size_t kMaxRank = 16;

struct TensorMeta {
  /// The element type; for complex numbers, the type of their real and imaginary parts.
  DType dtype = DType::F32;
  bool isComplex = false;
  Sizes sizes;
  std::vector<Size> strides;
  Size storageOffset;

  /// The sizes of the tensor that a caller passes. A complex number is passed as a pair, with the real part first.
  Sizes passedSizes() const {
    Sizes passed = sizes;
    if (isComplex)
      passed.push_back(2);
    return passed;
  }
};

/// An integer of the graph: a size, or the name of an integer that a node computes.
struct SymInt {
  std::string name;
  Size value;
};

struct Graph;

/// An argument of a node, or one of its results.
struct Argument {
  enum class Kind {
    None,
    Tensor,
    Tensors,
    OptionalTensors,
    Int,
    Ints,
    Float,
    Floats,
    Bool,
    SymBool,
    String,
    DType,
    Graph,
    Other
  };
  Kind kind = Kind::None;
  /// The key in the file, such as "as_int", for error messages.
  std::string spelling;
  /// Names of tensors. A name is empty where a list of optional tensors has None.
  std::vector<std::string> names;
  std::vector<SymInt> integers;
  double number = 0;
  std::vector<double> numbers;
  /// A boolean, or whether `dtype` is complex.
  bool flag = false;
  /// A string, or the name of a float or a condition that a node computes.
  std::string text;
  DType dtype = DType::F32;
  std::shared_ptr<Graph> graph;
};

struct NamedArgument {
  std::string name;
  Argument value;
};

struct Node {
  std::string name, target, stackTrace, moduleStack;
  std::vector<NamedArgument> inputs;
  std::vector<Argument> outputs;
};

/// An entry of the signature: its kind (user_input, parameter, ..., user_output, ...) and its value in the graph. For a
/// parameter, a buffer or a constant, `target` is its name in the module. If the elements of an output are written to a
/// buffer or an input (buffer_mutation, user_input_mutation), `target` is the name of this buffer or input.
struct Spec {
  std::string kind, target;
  Argument value;

  bool isTensor() const { return value.kind == Argument::Kind::Tensor; }
};
struct InputSpec : Spec {};
struct OutputSpec : Spec {};

struct SymbolRange {
  std::optional<int64_t> min, max;
};

/// Nodes in an order in which they can be computed, and the types of all values. If the graph is the argument of a
/// node, `arguments` and `results` are the inputs and outputs of the graph.
struct Graph {
  std::vector<Node> nodes;
  std::map<std::string, TensorMeta> tensors;
  std::map<std::string, Size> symInts;
  std::vector<Argument> arguments, results;
};

struct Program : Graph {
  std::vector<InputSpec> inputs;
  /// How the module's inputs and outputs are nested, as the text that torch writes for a pytree. Empty if the file
  /// lacks this text.
  std::string inputTree, outputTree;
  /// The names of the parameters of forward(). Empty if the file lacks them.
  std::vector<std::string> inputNames;
  std::vector<OutputSpec> outputs;
  std::map<std::string, SymbolRange> ranges;
  std::vector<std::string> guards;
};

/// The place of a weight in the archive.
struct Payload {
  std::string path;
  bool isPickled = false;
  std::optional<TensorMeta> meta;
};

/// These functions parse an entry of the archive. Their error messages contain the name of the entry and the place in
/// it.
llvm::Expected<Program> parseProgram(llvm::StringRef json, llvm::StringRef entry);
llvm::Expected<std::map<std::string, Payload>> parsePayloads(llvm::StringRef json,
                                                             llvm::StringRef entry);

} // namespace attn::pt2

#endif // ATTN_FRONTEND_PT2_GRAPH_H
