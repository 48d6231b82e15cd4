//===- FunctionTest.cpp - levels and signatures ---------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"

#include <cstdlib>

namespace {

struct FunctionTest : testing::Test {
  Library library = linkedLibrary();

  ~FunctionTest() override { unsetenv("ATTN_LEVEL"); }

  void expectRefused(const char *name, const char *level, attn_status status,
                     const std::string &message) {
    attn_function *function = nullptr;
    attn_function_options options = {sizeof options, level, {}};
    EXPECT_EQ(attn_function_create(library.get(), name, &options, &function), status);
    EXPECT_EQ(attn_last_error(), message);
    EXPECT_EQ(function, nullptr);
  }
};

TEST_F(FunctionTest, NullArguments) {
  EXPECT_EQ(attn_function_create(nullptr, "forward", nullptr, nullptr), ATTN_ERROR_USAGE);
  EXPECT_STREQ(attn_last_error(), "attn_function_create: expected a library, a name and a place "
                                  "for the function, got null");
}

TEST_F(FunctionTest, UnknownName) {
  expectRefused("backward", nullptr, ATTN_ERROR_NAME,
                "library 'kernel': expected one of its functions, got 'backward'");
}

TEST_F(FunctionTest, TooManyArguments) {
  expectRefused("crowded", nullptr, ATTN_ERROR_LIBRARY,
                "crowded: expected at most 256 inputs and outputs, got 300");
}

TEST_F(FunctionTest, TooManySymbols) {
  expectRefused("symbolic", nullptr, ATTN_ERROR_LIBRARY,
                "symbolic: expected at most 256 symbols, got 300");
}

#if defined __x86_64__

const char *const levels[] = {"of-another-cpu", "x86-64-v4-bf16", "x86-64-v4",
                              "x86-64-v3",      "x86-64-v2",      "x86-64"};
const std::string names = "of-another-cpu, x86-64-v4-bf16, x86-64-v4, x86-64-v3, x86-64-v2, x86-64";

/// Returns whether this CPU supports `level`, according to the run-time support of the C++ compiler.
bool compilerSays(const std::string &level) {
  if (level == "x86-64-v4-bf16")
    return __builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512bf16");
  if (level == "x86-64-v4")
    return __builtin_cpu_supports("x86-64-v4");
  if (level == "x86-64-v3")
    return __builtin_cpu_supports("x86-64-v3");
  if (level == "x86-64-v2")
    return __builtin_cpu_supports("x86-64-v2");
  return level == "x86-64";
}

std::string bestLevel() {
  return *std::find_if(std::begin(levels), std::end(levels), compilerSays);
}

TEST_F(FunctionTest, BestLevel) {
  EXPECT_EQ(attn_function_level(createFunction(library.get(), "forward").get()), bestLevel());
}

TEST_F(FunctionTest, EachForcedLevelRunsOrIsRefused) {
  for (const char *level : levels) {
    if (!compilerSays(level)) {
      attn_function *function = nullptr;
      attn_function_options options = {sizeof options, level, {}};
      EXPECT_EQ(attn_function_create(library.get(), "forward", &options, &function),
                ATTN_ERROR_LEVEL);
      std::string start = std::string("forward: level expected a level that this CPU runs, got '") +
                          level + "', which needs ";
      EXPECT_EQ(std::string(attn_last_error()).substr(0, start.size()), start);
      continue;
    }
    Function forward = createFunction(library.get(), "forward", level);
    EXPECT_STREQ(attn_function_level(forward.get()), level);
    Weights weights = createWeights(forward.get());
    ForwardArguments arguments;
    ASSERT_EQ(arguments.call(forward.get(), weights.get()), ATTN_OK) << attn_last_error();
    arguments.expectResult();
  }
}

TEST_F(FunctionTest, UnknownLevel) {
  expectRefused("forward", "x86-64-v9", ATTN_ERROR_LEVEL,
                "forward: level expected one of " + names + ", got 'x86-64-v9'");
}

TEST_F(FunctionTest, LevelOfTheEnvironment) {
  setenv("ATTN_LEVEL", "x86-64", 1);
  EXPECT_STREQ(attn_function_level(createFunction(library.get(), "forward").get()), "x86-64");
  setenv("ATTN_LEVEL", "", 1);
  EXPECT_EQ(attn_function_level(createFunction(library.get(), "forward").get()), bestLevel());
  setenv("ATTN_LEVEL", "avx", 1);
  expectRefused("forward", nullptr, ATTN_ERROR_LEVEL,
                "forward: ATTN_LEVEL expected one of " + names + ", got 'avx'");
}

TEST_F(FunctionTest, LevelOfTheCallerGoesFirst) {
  setenv("ATTN_LEVEL", "avx", 1);
  EXPECT_STREQ(attn_function_level(createFunction(library.get(), "forward", "x86-64").get()),
               "x86-64");
}

TEST_F(FunctionTest, NoLevelRuns) {
  expectRefused(
      "foreign", nullptr, ATTN_ERROR_LEVEL,
      "foreign: expected a CPU that runs one of of-another-cpu, got one without of-the-future");
}

TEST_F(FunctionTest, Levels) {
  Function forward = createFunction(library.get(), "forward");
  ASSERT_EQ(attn_function_num_levels(forward.get()), 6);
  for (int32_t i = 0; i < 6; ++i)
    EXPECT_STREQ(attn_function_level_name(forward.get(), i), levels[i]);
  EXPECT_EQ(attn_function_level_name(forward.get(), 6), nullptr);
  EXPECT_EQ(attn_function_level_name(forward.get(), -1), nullptr);
}

TEST_F(FunctionTest, Texts) {
  Function forward = createFunction(library.get(), "forward", "x86-64-v2");
  EXPECT_STREQ(attn_function_name(forward.get()), "forward");
  EXPECT_STREQ(attn_function_report(forward.get()), "fused\n");
  EXPECT_STREQ(attn_function_workspace_formula(forward.get()), "4*B + workers*16*S");
}

#endif // __x86_64__

TEST_F(FunctionTest, Signature) {
  Function forward = createFunction(library.get(), "forward");
  EXPECT_EQ(attn_function_num_arguments(forward.get(), ATTN_INPUT), 3);
  EXPECT_EQ(attn_function_num_arguments(forward.get(), ATTN_OUTPUT), 2);
  EXPECT_EQ(attn_function_num_arguments(forward.get(), ATTN_WEIGHT), 2);
  EXPECT_EQ(attn_function_num_arguments(forward.get(), attn_role(3)), 0);

  attn_argument argument = {};
  argument.size = sizeof argument;
  ASSERT_EQ(attn_function_argument(forward.get(), ATTN_INPUT, 2, &argument), ATTN_OK);
  EXPECT_STREQ(argument.name, "lengths");
  EXPECT_EQ(argument.dtype.code, kDLInt);
  EXPECT_EQ(argument.dtype.bits, 32);
  EXPECT_EQ(argument.dtype.lanes, 1);
  EXPECT_EQ(argument.rank, 1);
  EXPECT_EQ(argument.bounded, 1);
  EXPECT_STREQ(argument.bound.symbol, "x.1");
  EXPECT_EQ(argument.bound.max, 64);
  ASSERT_EQ(attn_function_argument(forward.get(), ATTN_WEIGHT, 1, &argument), ATTN_OK);
  EXPECT_STREQ(argument.name, "bias");
  EXPECT_EQ(argument.bounded, 0);

  attn_dim dim;
  ASSERT_EQ(attn_function_dim(forward.get(), ATTN_OUTPUT, 0, 1, &dim), ATTN_OK);
  EXPECT_STREQ(dim.symbol, "x.1");
  EXPECT_EQ(dim.min, 0);
  EXPECT_EQ(dim.max, 64);
  ASSERT_EQ(attn_function_dim(forward.get(), ATTN_OUTPUT, 0, 2, &dim), ATTN_OK);
  EXPECT_EQ(dim.symbol, nullptr);
  EXPECT_EQ(dim.min, 4);
  EXPECT_EQ(dim.max, 4);

  EXPECT_EQ(attn_function_num_symbols(forward.get()), 2);
  ASSERT_EQ(attn_function_symbol(forward.get(), 0, &dim), ATTN_OK);
  EXPECT_STREQ(dim.symbol, "x.0");
  EXPECT_EQ(dim.max, 1000);
}

TEST_F(FunctionTest, SignatureOfInOut) {
  Function append = createFunction(library.get(), "append");
  attn_argument argument = {};
  argument.size = sizeof argument;
  for (int32_t i = 0; i < 4; ++i) {
    ASSERT_EQ(attn_function_argument(append.get(), ATTN_INPUT, i, &argument), ATTN_OK);
    EXPECT_EQ(argument.in_out, i >= 2) << argument.name;
  }
  ASSERT_EQ(attn_function_argument(append.get(), ATTN_OUTPUT, 0, &argument), ATTN_OK);
  EXPECT_EQ(argument.in_out, 0);
}

TEST_F(FunctionTest, SignatureChecksIndices) {
  Function forward = createFunction(library.get(), "forward");
  attn_argument argument = {};
  attn_dim dim;
  EXPECT_EQ(attn_function_argument(forward.get(), ATTN_INPUT, 0, &argument), ATTN_ERROR_USAGE);
  EXPECT_STREQ(attn_last_error(),
               "attn_argument: expected a struct that starts with its size, got 0");
  argument.size = sizeof argument;
  EXPECT_EQ(attn_function_argument(forward.get(), ATTN_INPUT, 3, &argument), ATTN_ERROR_USAGE);
  EXPECT_STREQ(attn_last_error(), "attn_function_argument: expected an index in [0, 3), got 3");
  EXPECT_EQ(attn_function_dim(forward.get(), ATTN_INPUT, -1, 0, &dim), ATTN_ERROR_USAGE);
  EXPECT_STREQ(attn_last_error(), "attn_function_dim: expected an index in [0, 3), got -1");
  EXPECT_EQ(attn_function_dim(forward.get(), ATTN_INPUT, 0, 3, &dim), ATTN_ERROR_USAGE);
  EXPECT_STREQ(attn_last_error(), "attn_function_dim: expected an axis in [0, 3), got 3");
  EXPECT_EQ(attn_function_symbol(forward.get(), 2, &dim), ATTN_ERROR_USAGE);
  EXPECT_STREQ(attn_last_error(), "attn_function_symbol: expected an index in [0, 2), got 2");
}

TEST_F(FunctionTest, SymbolsAreThoseOfInputs) {
  Function sized = createFunction(library.get(), "sized");
  EXPECT_EQ(attn_function_num_symbols(sized.get()), 2);
  attn_dim dim;
  ASSERT_EQ(attn_function_dim(sized.get(), ATTN_OUTPUT, 0, 0, &dim), ATTN_OK);
  EXPECT_STREQ(dim.symbol, "2*a - b");
  EXPECT_EQ(attn_function_symbol(sized.get(), 2, &dim), ATTN_ERROR_USAGE);
  EXPECT_STREQ(attn_last_error(), "attn_function_symbol: expected an index in [0, 2), got 2");
}

TEST_F(FunctionTest, OlderArgumentStructIsFilledAsFarAsItGoes) {
  Function forward = createFunction(library.get(), "forward");
  attn_argument argument = {};
  argument.size = offsetof(attn_argument, rank);
  argument.rank = -5;
  ASSERT_EQ(attn_function_argument(forward.get(), ATTN_INPUT, 0, &argument), ATTN_OK);
  EXPECT_STREQ(argument.name, "x");
  EXPECT_EQ(argument.rank, -5);
  EXPECT_EQ(argument.size, offsetof(attn_argument, rank));
}

} // namespace
