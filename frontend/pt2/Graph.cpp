//===- Graph.cpp - read the JSON of a .pt2 file ----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/Graph.h"
#include "frontend/pt2/Sympy.h"
#include "support/Json.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace llvm;
using namespace attn::graph;
using namespace attn::pt2;
using json::fromJSON;
using json::ObjectMapper;
using json::Path;

static constexpr int64_t kSchemaMajor = 8;
static constexpr int64_t kStridedLayout = 7;

//===----------------------------------------------------------------------===//
// JSON -> structs
//===----------------------------------------------------------------------===//

/// Returns the only member of an object that represents a union. Reports an error if there is not exactly one.
static const json::Object::value_type *unionOf(const json::Value &value, Path path) {
  const json::Object *object = value.getAsObject();
  if (object && object->size() == 1)
    return &*object->begin();
  path.report("expected an object with one key");
  return nullptr;
}

// Each struct has an overload of fromJSON(). LLVM's readers of vectors, maps and optionals call these overloads.
namespace attn::graph {

static bool fromJSON(const json::Value &value, DType &dtype, Path path) {
  // torch's ScalarType in version 8 of the schema.
  static constexpr std::pair<int64_t, DType> kTypes[] = {
      {1, DType::U8},  {2, DType::I8},  {3, DType::I16}, {4, DType::I32},   {5, DType::I64},
      {6, DType::F16}, {7, DType::F32}, {8, DType::F64}, {12, DType::Bool}, {13, DType::BF16}};
  int64_t number;
  if (!json::fromJSON(value, number, path))
    return false;
  const auto *found = find_if(kTypes, [&](const auto &type) { return type.first == number; });
  if (found != std::end(kTypes)) {
    dtype = found->second;
    return true;
  }
  path.report("expected one of torch's types bool, uint8, int8 to int64, float16, bfloat16, "
              "float32, float64");
  return false;
}

} // namespace attn::graph

namespace attn {

static bool fromJSON(const json::Value &value, Size &size, Path path) {
  const auto *choice = unionOf(value, path);
  if (!choice)
    return false;
  StringRef key = choice->first;
  if (key == "as_int") {
    int64_t number;
    if (!json::fromJSON(choice->second, number, path.field(key)))
      return false;
    size = number;
    return true;
  }
  const json::Object *expression = choice->second.getAsObject();
  std::optional<StringRef> text = expression ? expression->getString("expr_str") : std::nullopt;
  std::optional<Size> parsed = key == "as_expr" && text ? parseSympy(*text) : std::nullopt;
  if (!parsed) {
    path.report("expected a number or an expression");
    return false;
  }
  size = *parsed;
  return true;
}

} // namespace attn

namespace attn::pt2 {

namespace {
/// The element type of a tensor: a real type, or a complex type whose real and imaginary parts have the type `part`.
struct NumberType {
  DType part = DType::F32;
  bool isComplex = false;
};

bool fromJSON(const json::Value &value, NumberType &type, Path path) {
  static constexpr int64_t kComplex64 = 10, kComplex128 = 11; // torch's numbers
  std::optional<int64_t> number = value.getAsInteger();
  type.isComplex = number == kComplex64 || number == kComplex128;
  if (!type.isComplex)
    return fromJSON(value, type.part, path);
  type.part = number == kComplex64 ? DType::F32 : DType::F64;
  return true;
}
} // namespace

static bool fromJSON(const json::Value &value, TensorMeta &meta, Path path) {
  ObjectMapper mapper(value, path);
  std::vector<Size> sizes;
  int64_t layout;
  NumberType type;
  if (!mapper || !mapper.map("dtype", type) || !mapper.map("sizes", sizes) ||
      !mapper.map("strides", meta.strides) || !mapper.map("storage_offset", meta.storageOffset) ||
      !mapper.map("layout", layout))
    return false;
  if (layout != kStridedLayout)
    path.field("layout").report("expected a dense tensor");
  else if (sizes.size() > kMaxRank)
    path.field("sizes").report("expected at most 16 dimensions");
  else if (any_of(sizes, [](const Size &size) { return size.constant() && *size.constant() < 0; }))
    path.field("sizes").report("expected sizes of at least 0");
  else {
    meta.sizes.assign(sizes.begin(), sizes.end());
    meta.dtype = type.part;
    meta.isComplex = type.isComplex;
    return true;
  }
  return false;
}

static bool fromJSON(const json::Value &value, SymInt &integer, Path path) {
  if (std::optional<int64_t> number = value.getAsInteger()) {
    integer.value = *number;
    return true;
  }
  const auto *choice = unionOf(value, path);
  if (!choice)
    return false;
  StringRef key = choice->first;
  if (key == "as_name")
    return json::fromJSON(choice->second, integer.name, path.field(key));
  int64_t number;
  if (key == "as_int" && json::fromJSON(choice->second, number, path.field(key))) {
    integer.value = number;
    return true;
  }
  path.report("expected a number or the name of one");
  return false;
}

/// JSON has no infinities and no NaN, so torch writes them as strings.
static bool readNumber(const json::Value &value, double &number, Path path) {
  if (std::optional<StringRef> text = value.getAsString()) {
    std::optional<double> special = StringSwitch<std::optional<double>>(*text)
                                        .Case("Infinity", INFINITY)
                                        .Case("-Infinity", -INFINITY)
                                        .Case("NaN", NAN)
                                        .Default(std::nullopt);
    if (special) {
      number = *special;
      return true;
    }
  }
  return json::fromJSON(value, number, path);
}

static bool fromJSON(const json::Value &value, Node &node, Path path);
static bool fromJSON(const json::Value &value, Argument &argument, Path path);

static bool readGraph(ObjectMapper &mapper, Graph &graph) {
  return mapper.map("nodes", graph.nodes) && mapper.map("tensor_values", graph.tensors) &&
         mapper.map("sym_int_values", graph.symInts);
}

static bool fromJSON(const json::Value &value, Argument &argument, Path path) {
  const auto *choice = unionOf(value, path);
  if (!choice)
    return false;
  StringRef key = choice->first;
  const json::Value &held = choice->second;
  Path inside = path.field(key);
  using Kind = Argument::Kind;
  argument.spelling = key.str();
  argument.kind = StringSwitch<Kind>(key)
                      .Case("as_none", Kind::None)
                      .Case("as_tensor", Kind::Tensor)
                      .Case("as_tensors", Kind::Tensors)
                      .Cases({"as_int", "as_sym_int"}, Kind::Int)
                      .Cases({"as_ints", "as_sym_ints"}, Kind::Ints)
                      .Case("as_optional_tensors", Kind::OptionalTensors)
                      .Cases({"as_float", "as_sym_float"}, Kind::Float)
                      .Case("as_floats", Kind::Floats)
                      .Case("as_bool", Kind::Bool)
                      .Case("as_sym_bool", Kind::SymBool)
                      .Case("as_string", Kind::String)
                      .Case("as_scalar_type", Kind::DType)
                      .Case("as_graph", Kind::Graph)
                      .Default(Kind::Other);
  switch (argument.kind) {
  case Kind::None:
  case Kind::Other:
    return true;
  case Kind::Tensor: {
    ObjectMapper mapper(held, inside);
    argument.names.emplace_back();
    return mapper && mapper.map("name", argument.names.front());
  }
  case Kind::Tensors: {
    const json::Array *array = held.getAsArray();
    if (!array) {
      inside.report("expected array");
      return false;
    }
    for (const auto &[i, element] : enumerate(*array)) {
      ObjectMapper mapper(element, inside.index(i));
      argument.names.emplace_back();
      if (!mapper || !mapper.map("name", argument.names.back()))
        return false;
    }
    return true;
  }
  case Kind::OptionalTensors: {
    const json::Array *array = held.getAsArray();
    if (!array) {
      inside.report("expected array");
      return false;
    }
    for (const auto &[i, element] : enumerate(*array)) {
      Argument one;
      if (!fromJSON(element, one, inside.index(i)))
        return false;
      argument.names.push_back(one.kind == Kind::Tensor ? one.names.front() : "");
    }
    return true;
  }
  case Kind::Int:
    argument.integers.emplace_back();
    return fromJSON(held, argument.integers.front(), inside);
  case Kind::Ints:
    return json::fromJSON(held, argument.integers, inside);
  case Kind::SymBool: {
    const auto *condition = unionOf(held, inside);
    if (!condition)
      return false;
    Path ofCondition = inside.field(condition->first);
    return condition->first == "as_name"
               ? json::fromJSON(condition->second, argument.text, ofCondition)
               : json::fromJSON(condition->second, argument.flag, ofCondition);
  }
  case Kind::Float: {
    if (key == "as_float")
      return readNumber(held, argument.number, inside);
    const auto *number = unionOf(held, inside);
    if (!number)
      return false;
    Path ofNumber = inside.field(number->first);
    return number->first == "as_name" ? json::fromJSON(number->second, argument.text, ofNumber)
                                      : readNumber(number->second, argument.number, ofNumber);
  }
  case Kind::Floats: {
    const json::Array *array = held.getAsArray();
    if (!array) {
      inside.report("expected array");
      return false;
    }
    argument.numbers.resize(array->size());
    for (const auto &[i, element] : enumerate(*array))
      if (!readNumber(element, argument.numbers[i], inside.index(i)))
        return false;
    return true;
  }
  case Kind::String:
    return json::fromJSON(held, argument.text, inside);
  case Kind::Bool:
    return json::fromJSON(held, argument.flag, inside);
  case Kind::DType: {
    NumberType type;
    if (!fromJSON(held, type, inside))
      return false;
    argument.dtype = type.part;
    argument.flag = type.isComplex;
    return true;
  }
  case Kind::Graph: {
    const json::Object *object = held.getAsObject();
    const json::Value *graph = object ? object->get("graph") : nullptr;
    Path inGraph = inside.field("graph");
    if (!graph) {
      inGraph.report("missing value");
      return false;
    }
    argument.graph = std::make_shared<Graph>();
    ObjectMapper mapper(*graph, inGraph);
    return mapper && readGraph(mapper, *argument.graph) &&
           mapper.map("inputs", argument.graph->arguments) &&
           mapper.map("outputs", argument.graph->results);
  }
  }
  llvm_unreachable("every kind returns");
}

static bool fromJSON(const json::Value &value, NamedArgument &argument, Path path) {
  ObjectMapper mapper(value, path);
  return mapper && mapper.map("name", argument.name) && mapper.map("arg", argument.value);
}

static bool fromJSON(const json::Value &value, Node &node, Path path) {
  ObjectMapper mapper(value, path);
  std::map<std::string, std::string> metadata;
  if (!mapper || !mapper.map("target", node.target) || !mapper.map("inputs", node.inputs) ||
      !mapper.map("outputs", node.outputs) || !mapper.map("metadata", metadata))
    return false;
  node.stackTrace = metadata["stack_trace"];
  node.moduleStack = metadata["nn_module_stack"];
  std::optional<std::string> name;
  if (!mapper.map("name", name))
    return false;
  node.name = name.value_or(node.target);
  return true;
}

/// Reads a value that has a name outside the graph: {"arg": {"name": ...}, "parameter_name": ...}.
template <typename Spec>
static bool readNamed(const json::Value &value, StringRef what, Spec &spec, Path path) {
  const json::Object *object = value.getAsObject();
  const json::Object *arg = object ? object->getObject("arg") : nullptr;
  std::optional<StringRef> name = arg ? arg->getString("name") : std::nullopt;
  std::optional<StringRef> target =
      object ? object->getString((what + "_name").str()) : std::nullopt;
  if (!name || !target) {
    path.report("expected a value and its name in the module");
    return false;
  }
  spec.value.kind = Argument::Kind::Tensor;
  spec.value.spelling = "as_tensor";
  spec.value.names = {name->str()};
  spec.target = target->str();
  return true;
}

static bool fromJSON(const json::Value &value, InputSpec &spec, Path path) {
  const auto *choice = unionOf(value, path);
  if (!choice)
    return false;
  spec.kind = choice->first.str();
  Path inside = path.field(choice->first);
  ObjectMapper mapper(choice->second, inside);
  if (spec.kind == "user_input")
    return mapper && mapper.map("arg", spec.value);
  if (spec.kind == "constant_input")
    return mapper && mapper.map("name", spec.target) && mapper.map("value", spec.value);
  // The content of other kinds is not read, because the importer rejects these kinds.
  return !is_contained({"parameter", "buffer", "tensor_constant"}, spec.kind) ||
         readNamed(choice->second, spec.kind, spec, inside);
}

static bool fromJSON(const json::Value &value, OutputSpec &spec, Path path) {
  const auto *choice = unionOf(value, path);
  if (!choice)
    return false;
  spec.kind = choice->first.str();
  if (spec.kind == "buffer_mutation" || spec.kind == "user_input_mutation")
    return readNamed(choice->second, StringRef(spec.kind).drop_back(strlen("_mutation")), spec,
                     path.field(choice->first));
  // The content of other kinds is not read, because the importer rejects these kinds.
  if (spec.kind != "user_output")
    return true;
  ObjectMapper mapper(choice->second, path.field(choice->first));
  return mapper && mapper.map("arg", spec.value);
}

static bool fromJSON(const json::Value &value, SymbolRange &range, Path path) {
  ObjectMapper mapper(value, path);
  return mapper && mapper.map("min_val", range.min) && mapper.map("max_val", range.max);
}

static bool fromJSON(const json::Value &value, Payload &payload, Path path) {
  ObjectMapper mapper(value, path);
  return mapper && mapper.map("path_name", payload.path) &&
         mapper.map("use_pickle", payload.isPickled) && mapper.map("tensor_meta", payload.meta);
}

/// Returns the member `name` of an object, or null after an error.
static const json::Value *member(const json::Value &value, StringLiteral name, Path path) {
  const json::Object *object = value.getAsObject();
  const json::Value *found = object ? object->get(name) : nullptr;
  if (!found)
    path.field(name).report("missing value");
  return found;
}

/// Reads how the module's inputs and outputs are nested. The file lists the signatures of several modules, first that
/// of the whole module.
static void readTrees(const json::Value &module, Program &program) {
  const json::Object *object = module.getAsObject();
  const json::Array *calls = object ? object->getArray("module_call_graph") : nullptr;
  const json::Object *whole = calls && !calls->empty() ? calls->front().getAsObject() : nullptr;
  const json::Object *signature = whole ? whole->getObject("signature") : nullptr;
  const json::Array *names = signature ? signature->getArray("forward_arg_names") : nullptr;
  std::optional<StringRef> tree = signature ? signature->getString("in_spec") : std::nullopt;
  if (signature)
    program.outputTree = signature->getString("out_spec").value_or("").str();
  if (!names || !tree)
    return;
  program.inputTree = tree->str();
  for (const json::Value &name : *names)
    program.inputNames.push_back(name.getAsString().value_or("").str());
}

static bool fromJSON(const json::Value &value, Program &program, Path path) {
  Path inVersion = path.field("schema_version"), inModule = path.field("graph_module");
  Path inGraph = inModule.field("graph"), inSignature = inModule.field("signature");
  const json::Value *version = member(value, "schema_version", path);
  int64_t major;
  if (!version || !ObjectMapper(*version, inVersion) ||
      !ObjectMapper(*version, inVersion).map("major", major))
    return false;
  if (major != kSchemaMajor) {
    inVersion.field("major").report("expected schema version 8");
    return false;
  }
  const json::Value *module = member(value, "graph_module", path);
  const json::Value *graph = module ? member(*module, "graph", inModule) : nullptr;
  const json::Value *signature = graph ? member(*module, "signature", inModule) : nullptr;
  if (!signature)
    return false;
  readTrees(*module, program);
  ObjectMapper outer(value, path), nodes(*graph, inGraph), specs(*signature, inSignature);
  return outer && nodes && specs && readGraph(nodes, program) &&
         specs.map("input_specs", program.inputs) &&
         specs.map("output_specs", program.outputs) &&
         outer.map("range_constraints", program.ranges) && outer.map("guards_code", program.guards);
}

} // namespace attn::pt2

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

static Expected<json::Value> parse(StringRef text, StringRef entry) {
  Expected<json::Value> value = attn::parseJSON(text);
  if (!value)
    return createStringError(formatv("{0}: {1}", entry, toString(value.takeError())));
  return value;
}

Expected<Program> attn::pt2::parseProgram(StringRef text, StringRef entry) {
  Expected<json::Value> value = parse(text, entry);
  if (!value)
    return value.takeError();
  Path::Root root(entry);
  Program program;
  if (!fromJSON(*value, program, root))
    return root.getError();
  return program;
}

Expected<std::map<std::string, Payload>> attn::pt2::parsePayloads(StringRef text, StringRef entry) {
  Expected<json::Value> value = parse(text, entry);
  if (!value)
    return value.takeError();
  Path::Root root(entry);
  ObjectMapper mapper(*value, root);
  std::map<std::string, Payload> payloads;
  if (!mapper || !mapper.map("config", payloads))
    return root.getError();
  return payloads;
}
