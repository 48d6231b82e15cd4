//===- EmitTest.cpp - emit libraries, load them, call them -----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/emit/Emit.h"
#include "codegen/Target.h"
#include "codegen/emit/Interface.h"
#include "runtime/attn_kernel.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Parser/Parser.h"
#include "llvm/BinaryFormat/Magic.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/TargetParser/Host.h"
#include "gtest/gtest.h"

#include <dlfcn.h>
#include <numeric>

using namespace attn;

namespace {

// y[i] is (x[i] * scale + bias) / 2 in the first `length` rows, and x[i] * scale in the other rows. For each row, a
// first task multiplies, and keeps products in scratch memory; a second task adds the bias and divides. The code
// stores the number of rows in the workspace and loads it again. scale and bias are packed weights.
constexpr llvm::StringLiteral kDeclaration = R"mlir(
func.func private @forward(%x: tensor<?x20xf32> {attn.name = "x", attn.dims = ["n", ""]},
                           %length: tensor<i32> {attn.name = "length", attn.bound = "n"},
                           %scale: tensor<20xf32> {attn.name = "scale", attn.weight},
                           %bias: tensor<20xf32> {attn.name = "bias", attn.weight})
    -> (tensor<?x20xf32> {attn.name = "y", attn.dims = ["n", ""]}, tensor<1xi64> {attn.name = "rows"})
    attributes {attn.symbols = [#attn.symbol<"n", 0 to 64>]}
)mlir";

constexpr llvm::StringLiteral kLevel = R"mlir(
memref.global "private" constant @two : memref<1xf32> = dense<2.0>
func.func @forward(%x: memref<?x20xf32> {attn.name = "x", attn.dims = ["n", ""]},
                   %length: memref<i32> {attn.name = "length"},
                   %scale: memref<20xf32> {attn.packed = 0}, %bias: memref<20xf32> {attn.packed = 1},
                   %y: memref<?x20xf32> {attn.name = "y", attn.dims = ["n", ""], attn.output},
                   %rows: memref<1xi64> {attn.name = "rows", attn.output}, %workspace: memref<?xi8>)
    attributes {attn.kernel = "entry", attn.symbols = [#attn.symbol<"n", 0 to 64>], attn.report = {slow_loops = [{source = "rows", reason = "two tasks"}]}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x20xf32>
  %total = memref.view %workspace[%c0][] : memref<?xi8> to memref<1xi64>
  %length0 = memref.load %length[] : memref<i32>
  %length1 = arith.index_cast %length0 : i32 to index
  attn.parallel_for @forward.scale(%x, %scale, %y) count(%n) : memref<?x20xf32>, memref<20xf32>, memref<?x20xf32>
  attn.parallel_for @forward.shift(%bias, %y, %length1) count(%n) : memref<20xf32>, memref<?x20xf32>, index
  %n64 = arith.index_cast %n : index to i64
  memref.store %n64, %total[%c0] : memref<1xi64>
  %t = memref.load %total[%c0] : memref<1xi64>
  memref.store %t, %rows[%c0] : memref<1xi64>
  return
}
func.func private @forward.scale(%i: index, %worker: index, %x: memref<?x20xf32>, %scale: memref<20xf32>,
                                 %y: memref<?x20xf32>, %scratch: memref<?xi8> {attn.scratch}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c20 = arith.constant 20 : index
  %zero = arith.constant 0.0 : f32
  %row = memref.view %scratch[%c0][] : memref<?xi8> to memref<20xf32>
  scf.for %j = %c0 to %c20 step %c4 {
    %a = vector.load %x[%i, %j] : memref<?x20xf32>, vector<4xf32>
    %b = vector.load %scale[%j] : memref<20xf32>, vector<4xf32>
    %p = arith.mulf %a, %b : vector<4xf32>
    vector.store %p, %row[%j] : memref<20xf32>, vector<4xf32>
  }
  // LLVM recognises loops that clear or copy memory, but must not replace these loops with calls of memset and memcpy.
  scf.for %j = %c0 to %c20 step %c1 { memref.store %zero, %y[%i, %j] : memref<?x20xf32> }
  scf.for %j = %c0 to %c20 step %c1 {
    %v = memref.load %row[%j] : memref<20xf32>
    memref.store %v, %y[%i, %j] : memref<?x20xf32>
  }
  return
}
func.func private @forward.shift(%i: index, %worker: index, %bias: memref<20xf32>,
                                 %y: memref<?x20xf32>, %length: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c20 = arith.constant 20 : index
  %twos = memref.get_global @two : memref<1xf32>
  %two = memref.load %twos[%c0] : memref<1xf32>
  %inside = arith.cmpi ult, %i, %length : index
  scf.if %inside {
    scf.for %j = %c0 to %c20 step %c1 {
      %a = memref.load %y[%i, %j] : memref<?x20xf32>
      %b = memref.load %bias[%j] : memref<20xf32>
      %s = arith.addf %a, %b : f32
      %half = arith.divf %s, %two : f32
      memref.store %half, %y[%i, %j] : memref<?x20xf32>
    }
  }
  return
}
func.func @forward.workspace(%n: index) -> (index, index) attributes {attn.kernel = "workspace", attn.text = "8 + workers x 80"} {
  %c8 = arith.constant 8 : index
  %c80 = arith.constant 80 : index
  return %c8, %c80 : index, index
}
func.func @forward.pack(%scale: memref<20xf32> {attn.name = "scale", attn.weight},
                        %bias: memref<20xf32> {attn.name = "bias", attn.weight},
                        %a: memref<20xf32> {attn.output}, %b: memref<20xf32> {attn.output})
    attributes {attn.kernel = "pack"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c20 = arith.constant 20 : index
  scf.for %j = %c0 to %c20 step %c1 {
    %s = memref.load %scale[%j] : memref<20xf32>
    memref.store %s, %a[%j] : memref<20xf32>
    %t = memref.load %bias[%j] : memref<20xf32>
    memref.store %t, %b[%j] : memref<20xf32>
  }
  return
}
)mlir";

/// All levels except those for CPUs of other architectures: a library is for one architecture.
static std::vector<const Target *> getTargetsHere() {
  std::vector<const Target *> targets;
  for (const Target *target : getTargets())
    if (target->isForGpu() || target->isOf(llvm::sys::getProcessTriple()))
      targets.push_back(target);
  return targets;
}

class EmitTest : public testing::Test {
protected:
  EmitTest() {
    mlir::DialectRegistry registry;
    mlir::registerAllDialects(registry);
    mlir::registerAllExtensions(registry);
    registry.insert<AttnDialect>();
    registerEmission(registry);
    registerTargets(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("attn-emit", directory));
  }
  ~EmitTest() override { llvm::sys::fs::remove_directories(directory); }

  /// Returns a module for all targets of getTargetsHere(), in the form in which the vectorize stage leaves modules.
  /// `level` is the code of each level.
  mlir::OwningOpRef<mlir::ModuleOp> parse(llvm::StringRef level = kLevel) {
    std::string text(kDeclaration);
    llvm::raw_string_ostream out(text);
    for (const Target *target : getTargetsHere())
      out << "module @\"" << target->level
          << "\" attributes {attn.target = " << target->getAttr(&context) << "} {" << level
          << "}\n";
    return mlir::parseSourceString<mlir::ModuleOp>(text, &context, "layer.mlir");
  }

  std::string path(llvm::StringRef name) {
    llvm::SmallString<128> result(directory);
    llvm::sys::path::append(result, name);
    return std::string(result);
  }
  std::string read(llvm::StringRef name) {
    auto buffer = llvm::MemoryBuffer::getFile(path(name));
    return buffer ? (*buffer)->getBuffer().str() : "";
  }
  std::vector<std::string> filesLeft() {
    std::vector<std::string> names;
    std::error_code error;
    for (llvm::sys::fs::directory_iterator i(directory, error), end; i != end; i.increment(error))
      names.push_back(llvm::sys::path::filename(i->path()).str());
    return names;
  }

  std::string emitError(mlir::ModuleOp module, const EmitOptions &options) {
    llvm::Expected<LLVMModule> ir = lowerToLLVMIR(module, "layer");
    return ir ? llvm::toString(emitLLVMIR(std::move(*ir), options))
              : llvm::toString(ir.takeError());
  }

  std::string emitTextError(llvm::StringRef text, llvm::StringRef name,
                            const EmitOptions &options) {
    llvm::Expected<LLVMModule> ir = parseLLVMIR(llvm::MemoryBufferRef(text, name));
    return ir ? llvm::toString(emitLLVMIR(std::move(*ir), options))
              : llvm::toString(ir.takeError());
  }

  mlir::MLIRContext context;
  llvm::SmallString<128> directory;
};

/// A parallel_for that uses two workers in turn.
void runTasks(void *pool, attn_task_fn task, void *context, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    task(context, i, i % 2);
}

TEST_F(EmitTest, EveryLevelComputes) {
  auto module = parse();
  ASSERT_TRUE(module);
  ASSERT_EQ(emitError(*module, {path("layer.so"), {}}), "");

  void *handle = dlopen(path("layer.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();
  auto query = reinterpret_cast<attn_query_fn>(dlsym(handle, "attn_query"));
  ASSERT_NE(query, nullptr);
  EXPECT_EQ(reinterpret_cast<void *>(query), dlsym(handle, "attn_query_layer"));
  EXPECT_EQ(dlsym(handle, "forward.x86-64"), nullptr);

  const attn_library_info &library = *query();
  EXPECT_EQ(library.abi_version, ATTN_ABI_VERSION);
  EXPECT_EQ(library.struct_bytes, sizeof(attn_library_info));
  EXPECT_STREQ(library.name, "layer");
  EXPECT_EQ(llvm::StringRef(library.manifest), read("layer.json"));
  ASSERT_EQ(library.num_functions, 1);
  const attn_function_info &function = library.functions[0];
  EXPECT_STREQ(function.name, "forward");
  ASSERT_EQ(function.num_inputs, 2);
  ASSERT_EQ(function.num_outputs, 2);
  ASSERT_EQ(function.num_weights, 2);
  ASSERT_EQ(function.num_symbols, 1);
  EXPECT_STREQ(function.symbols[0].name, "n");
  EXPECT_EQ(function.symbols[0].max, 64);
  const attn_tensor_info &x = function.inputs[0], &length = function.inputs[1];
  EXPECT_STREQ(x.name, "x");
  ASSERT_EQ(x.rank, 2);
  EXPECT_EQ(x.shape[0].symbol, 0);
  EXPECT_EQ(x.shape[1].symbol, -1);
  EXPECT_EQ(x.shape[1].size, 20);
  EXPECT_EQ(x.dtype_code, 2);
  EXPECT_EQ(x.dtype_bits, 32);
  EXPECT_EQ(x.bounded, 0);
  EXPECT_EQ(length.rank, 0);
  EXPECT_EQ(length.bounded, 1);
  EXPECT_EQ(length.bound.symbol, 0);
  EXPECT_STREQ(function.weights[1].name, "bias");

  constexpr int64_t kRows = 7, kLength = 5;
  std::vector<float> input(kRows * 20), scale(20), bias(20);
  std::iota(input.begin(), input.end(), -30.0f);
  std::iota(scale.begin(), scale.end(), 0.5f);
  std::iota(bias.begin(), bias.end(), 3.0f);

  std::vector<const Target *> targets = getTargetsHere();
  ASSERT_EQ(function.num_variants, int(targets.size()));
  for (auto [i, target] : llvm::enumerate(targets)) {
    const attn_variant_info &variant = function.variants[i];
    SCOPED_TRACE(variant.level);
    EXPECT_EQ(target->level, variant.level);
    EXPECT_STREQ(variant.workspace_text, "8 + workers x 80");
    EXPECT_STREQ(variant.report, "rows: two tasks");
    EXPECT_EQ(variant.packed_hash, function.variants[0].packed_hash);
    ASSERT_EQ(variant.packed_bytes, 256);
    if (!target->runsHere())
      continue;
    int64_t bytes[2] = {};
    variant.workspace(&kRows, bytes);
    EXPECT_EQ(bytes[0], 8);
    EXPECT_EQ(bytes[1], 80);
    alignas(ATTN_ALIGNMENT) char packed[256] = {}, workspace[64], taskWorkspace[2 * 128];
    const void *weights[] = {scale.data(), bias.data()};
    variant.pack(weights, packed);
    EXPECT_EQ(reinterpret_cast<float *>(packed + 128)[1], 4.0f);

    ASSERT_EQ(variant.num_packed, 2);
    EXPECT_EQ(std::vector(variant.packed_offsets, variant.packed_offsets + 3), (std::vector<int64_t>{0, 128, 256}));
    const void *tensors[] = {packed, packed + 128};

    std::vector<float> y(kRows * 20, -1);
    int64_t rows = -1;
    int32_t length = kLength;
    void *inputs[] = {input.data(), &length}, *outputs[] = {y.data(), &rows};
    attn_tile_counts tiles[2] = {};
    attn_kernel_call call = {inputs, outputs,  tensors, &kRows, workspace, taskWorkspace,
                             128,    runTasks, nullptr, tiles,  nullptr,   nullptr};
    variant.run(&call);
    EXPECT_EQ(rows, kRows);
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t j = 0; j < 20; ++j) {
        float scaled = input[r * 20 + j] * scale[j];
        EXPECT_EQ(y[r * 20 + j], r < kLength ? (scaled + bias[j]) / 2 : scaled) << r << ", " << j;
      }
  }
  dlclose(handle);
}

TEST_F(EmitTest, LLVMIRLeadsToTheSameBytes) {
  ASSERT_EQ(emitError(*parse(), {path("layer.o"), {}}), "");
  ASSERT_EQ(emitError(*parse(), {path("again.o"), {}}), "");
  ASSERT_EQ(emitError(*parse(), {path("text.ll"), {}}), "");
  ASSERT_EQ(emitTextError(read("text.ll"), "text.ll", {path("resumed.o"), {}}), "");
  EXPECT_FALSE(read("layer.o").empty());
  EXPECT_EQ(read("layer.o"), read("again.o"));
  EXPECT_EQ(read("layer.o"), read("resumed.o"));
  EXPECT_EQ(read("layer.h"), read("resumed.h"));
  EXPECT_EQ(read("layer.json"), read("resumed.json"));
}

TEST_F(EmitTest, ObjectsExportTheQueryAndNeedNothing) {
  ASSERT_EQ(emitError(*parse(), {path("layer.o"), {}}), "");
  auto object = llvm::object::ObjectFile::createObjectFile(path("layer.o"));
  ASSERT_TRUE(bool(object)) << llvm::toString(object.takeError());
  std::vector<std::string> global;
  for (const llvm::object::SymbolRef &symbol : object->getBinary()->symbols())
    if (llvm::cantFail(symbol.getFlags()) & llvm::object::SymbolRef::SF_Global)
      global.push_back(llvm::cantFail(symbol.getName()).str());
  EXPECT_EQ(global, std::vector<std::string>{"attn_query_layer"});
}

TEST_F(EmitTest, EverySuffixIsWritten) {
  for (llvm::StringRef name : {"l.a", "l.s", "l.ll"}) {
    SCOPED_TRACE(name.str());
    ASSERT_EQ(emitError(*parse(), {path(name), {}}), "");
    EXPECT_FALSE(read(name).empty());
  }
  EXPECT_EQ(llvm::identify_magic(read("l.a")), llvm::file_magic::archive);
  EXPECT_TRUE(llvm::StringRef(read("l.s")).contains("forward.scale.x86-64-v4"));
  EXPECT_EQ(emitError(*parse(), {path("l.dll"), {}}),
            "expected an output ending in .so, .a, .o, .s, .ll or .mlir, got '" + path("l.dll") +
                "'");
}

TEST_F(EmitTest, WeightsAreWrittenBeside) {
  std::vector<float> scale(20, 1.5f), bias(20, -2.0f);
  auto type = mlir::RankedTensorType::get({20}, mlir::Float32Type::get(&context));
  auto bytes = [](const std::vector<float> &data) {
    return llvm::ArrayRef(reinterpret_cast<const char *>(data.data()), data.size() * sizeof(float));
  };
  Weight weights[] = {{"scale", type, bytes(scale)}, {"bias", type, bytes(bias)}};
  ASSERT_EQ(emitError(*parse(), {path("layer.o"), weights}), "");

  std::string file = read("layer.safetensors");
  uint64_t headerBytes = 0;
  ASSERT_GE(file.size(), 8u);
  memcpy(&headerBytes, file.data(), 8);
  EXPECT_EQ(headerBytes % 8, 0u);
  auto header = llvm::json::parse(llvm::StringRef(file).substr(8, headerBytes));
  ASSERT_TRUE(bool(header)) << llvm::toString(header.takeError());
  EXPECT_EQ(*header,
            llvm::json::Value(llvm::json::Object{
                {"scale",
                 llvm::json::Object{{"dtype", "F32"}, {"shape", {20}}, {"data_offsets", {0, 80}}}},
                {"bias", llvm::json::Object{
                             {"dtype", "F32"}, {"shape", {20}}, {"data_offsets", {80, 160}}}}}));
  EXPECT_EQ(file.size(), 8 + headerBytes + 160);
  float last;
  memcpy(&last, file.data() + file.size() - 4, 4);
  EXPECT_EQ(last, -2.0f);

  EXPECT_EQ(emitError(*parse(), {path("other.o"), llvm::ArrayRef(weights).take_front()}),
            "expected data of weight 'bias' of 'forward'");
}

TEST_F(EmitTest, NothingIsLeftOfAFailure) {
  // A copy of dynamic size becomes a call of memcpy, which objects must not contain.
  std::string level(kLevel);
  llvm::StringRef anchor = "  %n64 =";
  level.insert(level.find(anchor), "  memref.copy %x, %y : memref<?x20xf32> to memref<?x20xf32>\n");
  EXPECT_EQ(emitError(*parse(level), {path("layer.so"), {}}),
            "expected code without undefined symbols, got 'memcpy'");
  EXPECT_EQ(filesLeft(), std::vector<std::string>());
  EXPECT_NE(emitError(*parse(), {path("no/such/folder/layer.so"), {}}), "");
  // The header is written first, then the manifest layer.json, which fails here because a folder has this name. The
  // library would be written last.
  ASSERT_FALSE(llvm::sys::fs::create_directory(path("layer.json")));
  EXPECT_NE(emitError(*parse(), {path("layer.so"), {}}), "");
  EXPECT_EQ(filesLeft(), std::vector<std::string>{"layer.json"});
}

TEST_F(EmitTest, OperationsWithoutLoweringAreNamed) {
  std::string level(kLevel);
  level.insert(level.find("  %n64 ="), "  \"test.unknown\"() : () -> ()\n");
  context.allowUnregisteredDialects();
  std::string messages;
  mlir::ScopedDiagnosticHandler handler(
      &context, [&](mlir::Diagnostic &diagnostic) { messages += diagnostic.str(); });
  EXPECT_EQ(emitError(*parse(level), {path("layer.so"), {}}),
            "the module could not be lowered to LLVM IR");
  EXPECT_EQ(messages, "expected an operation that has a lowering to LLVM IR, got 'test.unknown'");
}

TEST_F(EmitTest, OtherLLVMIRIsRefused) {
  EXPECT_EQ(emitTextError("@a = global i32 0", "a.ll", {path("a.o"), {}}),
            "expected the LLVM IR of an attn library, got no constant 'attn.manifest'");
  std::string message = emitTextError("nonsense", "a.ll", {path("a.o"), {}});
  EXPECT_TRUE(llvm::StringRef(message).starts_with("a.ll:1:1: error: expected top-level entity"))
      << message;
}

// The names are keywords of C or C++, would end a comment, begin with a digit, are used by the header itself, or are
// equal once they are made identifiers.
TEST_F(EmitTest, HeadersCompile) {
  FunctionInfo function{"for.ward", {}, {}, {}, {{"x.0", 0, 9}, {"x_0", 1, 2}}, {}};
  for (llvm::StringRef name :
       {"default", "class", "weights", "x.y", "x_y", "*/ #error", "0", "attn_call", "uint8_t"})
    function.inputs.push_back({name.str(), DataType::get("i1"), {{0, 0}, {4, -1}}, DimInfo{0, 1}});
  function.outputs.push_back({"inputs", DataType::get("bf16"), {}, {}});
  function.outputs.push_back({"y", DataType::get("ui8"), {{0, 1}}, {}});
  FunctionInfo nothing{"nothing", {}, {}, {}, {}, {}};
  nothing.weights.push_back({"w", DataType::get("f16"), {{4, -1}}, {}});
  FunctionInfo same = nothing, hostile = nothing;
  same.name = "for_ward";
  hostile.name = "f*/ #error";
  std::error_code error;
  llvm::raw_fd_ostream(path("names.h"), error)
      << writeHeader({"names", "attn", {function, nothing, same, hostile}});
  ASSERT_EQ(emitError(*parse(), {path("layer.o"), {}}), "");
  llvm::raw_fd_ostream(path("use.c"), error)
      << "#include \"layer.h\"\n#include \"names.h\"\n"
         "int use(attn_function *f, const attn_weights *w, const float *x, const int *n, float *y, "
         "int64_t *rows) {\n"
         "  return layer_forward(f, w, 7, x, n, y, rows, NULL);\n}\n";
  std::string include = "-I" ATTN_RUNTIME_DIR, source = path("use.c");
  for (auto [compiler, standard, language] :
       {std::array<llvm::StringRef, 3>{C_COMPILER, "-std=c11", "-xc"},
        {CXX_COMPILER, "-std=c++17", "-xc++"}}) {
    SCOPED_TRACE(compiler.str());
    EXPECT_EQ(
        llvm::sys::ExecuteAndWait(compiler, {compiler, "-Wall", "-Wextra", "-Werror", "-pedantic",
                                             include, "-fsyntax-only", standard, language, source}),
        0);
  }
}

TEST(Manifest, ReadsWhatItWrites) {
  FunctionInfo function{
      "f",
      {},
      {},
      {},
      {{"x.0", 0, 9}},
      {{"x86-64", {"sse3"}, "8 x.0", "plan:\n  \"per-head\"", "per-head", 64, ~0ull, "bf16"}}};
  function.inputs.push_back({"x", DataType::get("bf16"), {{0, 0}, {4, -1}}, DimInfo{0, 0}});
  std::string text = writeManifest({"lib", "attn", {function}});
  auto library = readManifest(text);
  ASSERT_TRUE(bool(library)) << llvm::toString(library.takeError());
  EXPECT_EQ(writeManifest(*library), text);
  EXPECT_EQ(library->functions[0].variants[0].packedHash, ~0ull);
  EXPECT_FALSE(llvm::errorToBool(readManifest("{}").takeError()) == false);
}

TEST(Manifest, NamesThePlaceOfAMistake) {
  FunctionInfo function{"f", {}, {}, {}, {}, {}};
  function.inputs.push_back({"x", DataType::get("f32"), {{4, -1}}, {}});
  std::string text = writeManifest({"lib", "attn", {function}});
  text.replace(text.find("4\n"), 1, "{}");
  EXPECT_EQ(llvm::toString(readManifest(text).takeError()),
            "expected a size or a symbol at manifest.functions[0].inputs[0].shape[0]");
}

TEST(Targets, AreChosenByName) {
  auto names = [](llvm::StringRef list) -> std::string {
    auto targets = parseTargets(list);
    if (!targets)
      return llvm::toString(targets.takeError());
    std::string result;
    for (const Target *target : *targets)
      result += target->level.str() + " ";
    return result;
  };
  EXPECT_EQ(names("x86-64,x86-64-v4,x86-64"), "x86-64-v4 x86-64 ");
  EXPECT_EQ(names("x86_64-v3"), "expected a target level of x86-64-amx, x86-64-v4-bf16, x86-64-v4, "
                                "x86-64-v3, x86-64, aarch64-fp16-bf16, aarch64, sm_90a, sm_80, got 'x86_64-v3'");
  EXPECT_EQ(names("x86-64,"), "expected a target level of x86-64-amx, x86-64-v4-bf16, x86-64-v4, "
                              "x86-64-v3, x86-64, aarch64-fp16-bf16, aarch64, sm_90a, sm_80, got ''");
}

} // namespace
