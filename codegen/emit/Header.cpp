//===- Header.cpp - write the header of a library --------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The header has one inline function for each function of the library. The inline function takes a typed pointer for
// every input and output and an int64_t for every size of an input that only the call determines. It creates DLTensors
// from these arguments and calls attn_call.
//
//===----------------------------------------------------------------------===//

#include "codegen/emit/Interface.h"
#include "codegen/emit/Tables.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

using namespace attn;

std::string attn::toIdentifier(llvm::StringRef name) {
  std::string result(name);
  for (char &c : result)
    c = llvm::isAlnum(c) ? c : '_';
  if (result.empty() || llvm::isDigit(result.front()))
    result.insert(result.begin(), '_');
  return result;
}

/// Whether `name` is reserved in C11 or C++20, or used by the header itself.
static bool isWord(llvm::StringRef name) {
  static constexpr llvm::StringLiteral kWords =
      "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t "
      "char32_t char8_t class co_await co_return co_yield compl concept const const_cast "
      "consteval constexpr constinit continue decltype default delete do double dynamic_cast "
      "else enum explicit export extern false float for friend goto if inline int long mutable "
      "namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
      "register reinterpret_cast requires restrict return short signed sizeof static "
      "static_assert static_cast struct switch template this thread_local throw true try "
      "typedef typeid typename union unsigned using virtual void volatile wchar_t while xor "
      "xor_eq "
      "DLTensor NULL attn_call attn_call_options attn_function attn_output_shape attn_status "
      "attn_weights int16_t "
      "int32_t int64_t int8_t kDLCPU uint16_t uint8_t";
  return llvm::is_contained(llvm::split(kWords, ' '), name);
}

namespace {
/// Creates identifiers for one scope. They are all different, and none is reserved.
class Scope {
public:
  std::string add(llvm::StringRef name) {
    std::string identifier = toIdentifier(name);
    while (isWord(identifier) || !taken.insert(identifier).second)
      identifier += '_';
    return identifier;
  }

private:
  llvm::StringSet<> taken;
};

/// Writes the inline function for one function of the library.
class FunctionWriter {
public:
  FunctionWriter(const FunctionInfo &function, std::string identifier, llvm::raw_ostream &out)
      : function(function), identifier(std::move(identifier)), out(out) {}

  void write() {
    for (llvm::StringRef own : {"function", "weights", "options"})
      scope.add(own);
    for (const SymbolInfo &symbol : function.inputSymbols())
      symbols.push_back(scope.add(symbol.name));
    std::vector<std::string> inputs = names(function.inputs), outputs = names(function.outputs);
    writeComment();

    llvm::SmallVector<std::string> parameters = {"attn_function *function"};
    if (!function.weights.empty())
      parameters.push_back("const attn_weights *weights");
    for (const std::string &symbol : symbols)
      parameters.push_back("int64_t " + symbol);
    for (auto [tensor, name] : llvm::zip_equal(function.inputs, inputs))
      parameters.push_back(((tensor.inOut ? "" : "const ") + tensor.type->c + " *" + name).str());
    for (auto [tensor, name] : llvm::zip_equal(function.outputs, outputs))
      parameters.push_back((tensor.type->c + " *" + name).str());
    parameters.push_back("const attn_call_options *options");

    out << "static inline attn_status " << identifier << "(\n    "
        << llvm::join(parameters, ",\n    ") << ") {\n";
    inputList = writeTensors(function.inputs, inputs, "inputs");
    std::string outputList = writeTensors(function.outputs, outputs, "outputs");
    out << "  return attn_call(function, " << (function.weights.empty() ? "NULL" : "weights")
        << ", " << inputList << ", " << function.inputs.size() << ", " << outputList << ", "
        << function.outputs.size() << ", options);\n"
        << "}\n\n";
  }

private:
  std::vector<std::string> names(llvm::ArrayRef<TensorInfo> tensors) {
    std::vector<std::string> result;
    for (const TensorInfo &tensor : tensors)
      result.push_back(scope.add(tensor.name));
    return result;
  }

  void writeComment() {
    out << "/* " << printable(function.name) << "\n";
    auto list = [&](llvm::StringRef role, llvm::ArrayRef<TensorInfo> tensors) {
      for (const TensorInfo &tensor : tensors) {
        out << " *   " << (tensor.inOut ? "in-out" : role) << " " << printable(tensor.name) << ": "
            << tensor.type->name << " [";
        llvm::interleaveComma(tensor.shape, out,
                              [&](DimInfo dim) { out << printable(function.nameOf(dim)); });
        out << "]";
        if (tensor.bound)
          out << ", every element in " << printable(function.leastOf(tensor)) << " to "
              << printable(function.nameOf(*tensor.bound));
        out << "\n";
      }
    };
    list("input", function.inputs);
    list("output", function.outputs);
    list("weight", function.weights);
    for (const SymbolInfo &symbol : function.inputSymbols())
      out << " *   size " << printable(symbol.name) << ": " << symbol.min << " to " << symbol.max
          << "\n";
    for (const SymbolInfo &symbol : function.symbols)
      if (symbol.formula && symbol.formula->isCondition())
        out << " *   only where " << printable(symbol.name) << "\n";
    out << " *   levels ";
    llvm::interleaveComma(function.variants, out,
                          [&](const VariantInfo &variant) { out << variant.level; });
    out << "\n */\n";
  }

  /// Replaces each character that must not be in a C comment by '?': backslashes, unprintable characters, and the
  /// second character of the beginning or of the end of a comment.
  static std::string printable(llvm::StringRef name) {
    std::string result;
    for (char c : name) {
      char before = result.empty() ? ' ' : result.back();
      bool isEdge = (before == '*' && c == '/') || (before == '/' && c == '*');
      result += llvm::isPrint(c) && c != '\\' && !isEdge ? c : '?';
    }
    return result;
  }

  /// Declares a DLTensor for each tensor and an array of their addresses, and returns the expression to pass for the
  /// array. For a shape with sizes that the library computes, the generated code calls attn_output_shape.
  std::string writeTensors(llvm::ArrayRef<TensorInfo> tensors, llvm::ArrayRef<std::string> data,
                           llvm::StringRef list) {
    llvm::SmallVector<std::string> addresses;
    for (auto [i, tensor, name] : llvm::enumerate(tensors, data)) {
      std::string shape = "NULL";
      if (llvm::any_of(tensor.shape, [&](DimInfo dim) { return dim.symbol >= int64_t(symbols.size()); })) {
        shape = scope.add(name + "_shape");
        std::string status = scope.add(name + "_status");
        out << "  int64_t " << shape << "[" << tensor.shape.size() << "];\n"
            << "  attn_status " << status << " = attn_output_shape(function, " << inputList << ", "
            << function.inputs.size() << ", " << i << ", " << shape << ");\n"
            << "  if (" << status << ")\n    return " << status << ";\n";
      } else if (!tensor.shape.empty()) {
        shape = scope.add(name + "_shape");
        out << "  int64_t " << shape << "[] = {";
        llvm::interleaveComma(tensor.shape, out, [&](DimInfo dim) {
          out << (dim.symbol < 0 ? std::to_string(dim.size) : symbols[dim.symbol]);
        });
        out << "};\n";
      }
      std::string variable = scope.add(name + "_tensor");
      out << "  DLTensor " << variable << " = {(void *)" << name << ", {kDLCPU, 0}, "
          << tensor.shape.size() << ", {" << unsigned(tensor.type->code) << ", "
          << unsigned(tensor.type->bits) << ", 1}, " << shape << ", NULL, 0};\n";
      addresses.push_back("&" + variable);
    }
    if (addresses.empty())
      return "NULL";
    std::string array = scope.add(list);
    out << "  const DLTensor *" << array << "[] = {" << llvm::join(addresses, ", ") << "};\n";
    return array;
  }

  const FunctionInfo &function;
  std::string identifier;
  llvm::raw_ostream &out;
  Scope scope;
  std::vector<std::string> symbols;
  std::string inputList;
};
} // namespace

std::string attn::writeHeader(const LibraryInfo &library) {
  std::string text;
  llvm::raw_string_ostream out(text);
  std::string guard = "ATTN_LIBRARY_" + llvm::StringRef(toIdentifier(library.name)).upper() + "_H";
  out << "/* The library '" << library.name << "', compiled by " << library.compiler << ".\n"
      << " *\n"
      << " * Each C function below calls its first argument, `function`. attn_function_create()\n"
      << " * makes it from the name in the comment above the C function.\n"
      << " * Tensors are row-major without gaps, and sizes are numbers of elements. The result is\n"
      << " * ATTN_OK or another status of attn.h. If an argument is refused, nothing is written,\n"
      << " * and attn_last_error() names the argument.\n"
      << " * `options` may be null: the calling thread then does all the work.\n"
      << " */\n"
      << "#ifndef " << guard << "\n#define " << guard << "\n\n#include <attn.h>\n\n"
      << "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
      << "/* The argument of attn_library_from_query() if a program links the library. */\n"
      << "const struct attn_library_info *" << queryName(library.name) << "(void);\n\n";
  Scope scope;
  scope.add(queryName(library.name));
  for (const FunctionInfo &function : library.functions)
    FunctionWriter(function, scope.add(library.name + "_" + function.name), out).write();
  out << "#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
  return text;
}
