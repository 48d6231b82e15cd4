//===- CheckTest.cpp - one test per check: the message, nothing written ---===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"

namespace {

using CheckTest = ForwardTest;

TEST_F(CheckTest, TooFewInputs) {
  inputs.pop_back();
  expectRefused(ATTN_ERROR_COUNT, "forward: expected 3 inputs, got 2");
}

TEST_F(CheckTest, TooManyOutputs) {
  outputs.push_back(&y.dl);
  expectRefused(ATTN_ERROR_COUNT, "forward: expected 2 outputs, got 3");
}

TEST_F(CheckTest, NullArray) {
  EXPECT_EQ(attn_call(forward.get(), weights.get(), nullptr, 3, outputs.data(), 2, nullptr),
            ATTN_ERROR_NULL);
  EXPECT_STREQ(attn_last_error(), "forward: expected 3 inputs, got null");
}

TEST_F(CheckTest, NullTensor) {
  inputs[1] = nullptr;
  expectRefused(ATTN_ERROR_NULL, "forward: argument 'residual' expected a tensor, got null");
}

TEST_F(CheckTest, NullShape) {
  x.dl.shape = nullptr;
  expectRefused(ATTN_ERROR_NULL, "forward: argument 'x' expected a shape, got null");
}

TEST_F(CheckTest, NullData) {
  y.dl.data = nullptr;
  expectRefused(ATTN_ERROR_NULL, "forward: argument 'y' expected data, got null");
}

TEST_F(CheckTest, Device) {
  x.dl.device.device_type = kDLCUDA;
  expectRefused(ATTN_ERROR_DEVICE, "forward: argument 'x' expected device type 1 (CPU), got 2");
}

TEST_F(CheckTest, DtypeCode) {
  x.dl.dtype.code = kDLBfloat;
  x.dl.dtype.bits = 16;
  expectRefused(ATTN_ERROR_DTYPE, "forward: argument 'x' expected float32, got bfloat16");
}

TEST_F(CheckTest, DtypeBits) {
  lengths.dl.dtype.bits = 64;
  expectRefused(ATTN_ERROR_DTYPE, "forward: argument 'lengths' expected int32, got int64");
}

TEST_F(CheckTest, DtypeBool) {
  x.dl.dtype = {6, 8, 1};
  expectRefused(ATTN_ERROR_DTYPE, "forward: argument 'x' expected float32, got bool");
}

TEST_F(CheckTest, DtypeOfTheFuture) {
  x.dl.dtype.code = 200;
  expectRefused(ATTN_ERROR_DTYPE, "forward: argument 'x' expected float32, got dtype code 200");
}

TEST_F(CheckTest, Lanes) {
  x.dl.dtype.lanes = 4;
  expectRefused(ATTN_ERROR_DTYPE, "forward: argument 'x' expected 1 lane, got 4");
}

TEST_F(CheckTest, Rank) {
  x.dl.ndim = 2;
  expectRefused(ATTN_ERROR_RANK, "forward: argument 'x' expected rank 3, got 2");
}

TEST_F(CheckTest, NegativeRank) {
  x.dl.ndim = -1;
  expectRefused(ATTN_ERROR_RANK, "forward: argument 'x' expected rank 3, got -1");
}

TEST_F(CheckTest, StaticSize) {
  x.shape[2] = 3;
  expectRefused(ATTN_ERROR_SHAPE, "forward: argument 'x' expected size 4 in dimension 2, got 3");
}

TEST_F(CheckTest, SymbolBetweenInputs) {
  residual.shape[1] = 4;
  expectRefused(ATTN_ERROR_SHAPE, "forward: argument 'residual' expected size 5 in dimension 1, as "
                                  "in dimension 1 of 'x', got 4");
}

TEST_F(CheckTest, SymbolBetweenInputAndOutput) {
  total.shape[0] = 4;
  expectRefused(ATTN_ERROR_SHAPE, "forward: argument 'total' expected size 3 in dimension 0, as in "
                                  "dimension 0 of 'x', got 4");
}

TEST_F(CheckTest, SymbolAboveRange) {
  x.shape[1] = 65;
  expectRefused(ATTN_ERROR_SHAPE,
                "forward: argument 'x' expected size in [0, 64] in dimension 1, got 65");
}

TEST_F(CheckTest, NegativeSize) {
  x.shape[0] = -3;
  expectRefused(ATTN_ERROR_SHAPE,
                "forward: argument 'x' expected size in [0, 1000] in dimension 0, got -3");
}

TEST_F(CheckTest, Stride) {
  int64_t strides[] = {40, 8, 1};
  x.dl.strides = strides;
  expectRefused(ATTN_ERROR_STRIDE, "forward: argument 'x' expected stride 4 in dimension 1 "
                                   "(compact row-major), got 8");
}

TEST_F(CheckTest, BroadcastStride) {
  int64_t strides[] = {0, 4, 1};
  y.dl.strides = strides;
  expectRefused(ATTN_ERROR_STRIDE, "forward: argument 'y' expected stride 20 in dimension 0 "
                                   "(compact row-major), got 0");
}

TEST_F(CheckTest, CompactStridesPass) {
  int64_t strides[] = {20, 4, 1};
  x.dl.strides = strides;
  ASSERT_EQ(call(forward.get(), weights.get()), ATTN_OK) << attn_last_error();
  expectResult();
}

TEST_F(CheckTest, StrideOfSizeOnePasses) {
  ForwardArguments one(1, 1);
  int64_t strides[] = {999, -3, 1};
  one.x.dl.strides = strides;
  ASSERT_EQ(one.call(forward.get(), weights.get()), ATTN_OK) << attn_last_error();
  one.expectResult();
}

TEST_F(CheckTest, Alignment) {
  x.dl.byte_offset = 2;
  std::vector<float> room(61);
  x.dl.data = room.data();
  EXPECT_EQ(call(forward.get(), weights.get()), ATTN_ERROR_ALIGNMENT);
  EXPECT_EQ(std::string(attn_last_error())
                .find("forward: argument 'x' expected data aligned to 4 "
                      "bytes, got 0x"),
            0u);
  expectUntouched();
}

TEST_F(CheckTest, ByteOffsetIsAdded) {
  std::vector<float> room(3, 0.0f);
  room.insert(room.end(), x.elements.begin(), x.elements.end());
  x.dl.data = room.data();
  x.dl.byte_offset = 12;
  ASSERT_EQ(call(forward.get(), weights.get()), ATTN_OK) << attn_last_error();
  expectResult();
}

TEST_F(CheckTest, ByteOffsetBeyondTheAddressSpace) {
  x.dl.byte_offset = UINT64_MAX - 7;
  expectRefused(ATTN_ERROR_SHAPE, "forward: argument 'x' expected 240 bytes within the address "
                                  "space, got byte offset 18446744073709551608");
}

TEST_F(CheckTest, OutputOverlapsInput) {
  y.dl.data = &x.elements[59];
  expectRefused(ATTN_ERROR_OVERLAP,
                "forward: argument 'y' expected memory of its own, got memory of 'x'");
}

TEST_F(CheckTest, OutputOverlapsOutput) {
  total.dl.data = y.elements.data();
  expectRefused(ATTN_ERROR_OVERLAP,
                "forward: argument 'total' expected memory of its own, got memory of 'y'");
}

/// Arguments of append. The in-out arguments must be unchanged after an error.
struct AppendTest : testing::Test {
  Tensor<float> row{{4}, 2}, cache{{8, 4}, untouched}, sums{{8}, untouched}, y{{4}, untouched};
  Tensor<int64_t> at{{1}, 5};
  Library library = linkedLibrary();
  Function append = createFunction(library.get(), "append");

  attn_status call(const attn_call_options *options = nullptr) {
    const DLTensor *inputs[] = {&row.dl, &at.dl, &cache.dl, &sums.dl}, *outputs[] = {&y.dl};
    return attn_call(append.get(), nullptr, inputs, 4, outputs, 1, options);
  }

  void expectRefused(attn_status status, const char *message,
                     const attn_call_options *options = nullptr) {
    EXPECT_EQ(call(options), status);
    EXPECT_STREQ(attn_last_error(), message);
    for (const Tensor<float> *tensor : {&cache, &sums, &y})
      for (float element : tensor->elements)
        ASSERT_EQ(element, untouched);
  }
};

TEST_F(AppendTest, InOutIsWritten) {
  for (float previous : {untouched, 2.0f}) {
    ASSERT_EQ(call(), ATTN_OK) << attn_last_error();
    for (int i = 0; i < 32; ++i)
      EXPECT_EQ(cache.elements[i], i / 4 == 5 ? 2 : untouched);
    EXPECT_EQ(y.elements[0], previous);
  }
  EXPECT_EQ(sums.elements[5], untouched + 16);
}

TEST_F(AppendTest, IndexBeyondInOut) {
  at.elements[0] = 8;
  expectRefused(ATTN_ERROR_VALUE,
                "append: argument 'at' expected values in [0, 7], got 8 at element 0");
}

TEST_F(AppendTest, InOutOverlapsInput) {
  row.dl.data = &cache.elements[31];
  expectRefused(ATTN_ERROR_OVERLAP,
                "append: argument 'cache' expected memory of its own, got memory of 'row'");
}

TEST_F(AppendTest, InOutOverlapsInOut) {
  sums.dl.data = &cache.elements[24];
  expectRefused(ATTN_ERROR_OVERLAP,
                "append: argument 'sums' expected memory of its own, got memory of 'cache'");
}

TEST_F(AppendTest, OutputOverlapsInOut) {
  y.dl.data = &cache.elements[0];
  expectRefused(ATTN_ERROR_OVERLAP,
                "append: argument 'y' expected memory of its own, got memory of 'cache'");
}

TEST_F(AppendTest, InOutOverlapsWorkspace) {
  attn_call_options options = {};
  options.size = sizeof options;
  alignas(64) char workspace[256] = {};
  options.workspace = workspace;
  options.workspace_bytes = sizeof workspace;
  sums.dl.data = workspace;
  expectRefused(ATTN_ERROR_OVERLAP,
                "append: workspace expected memory of its own, got memory of 'sums'", &options);
}

TEST_F(CheckTest, NeighboursAndSharedInputsPass) {
  std::vector<float> room(63);
  y.dl.data = room.data();
  total.dl.data = room.data() + 60;
  inputs[1] = &x.dl;
  EXPECT_EQ(call(forward.get(), weights.get()), ATTN_OK) << attn_last_error();
}

TEST_F(CheckTest, LengthAboveBound) {
  lengths.elements[1] = 6;
  expectRefused(ATTN_ERROR_VALUE,
                "forward: argument 'lengths' expected values in [0, 5], got 6 at element 1");
}

TEST_F(CheckTest, NegativeLength) {
  lengths.elements[2] = -1;
  expectRefused(ATTN_ERROR_VALUE,
                "forward: argument 'lengths' expected values in [0, 5], got -1 at element 2");
}

TEST_F(CheckTest, LongValues) {
  Function halve = createFunction(library.get(), "halve");
  Tensor<int64_t> ids({2});
  ids.elements = {9, int64_t(1) << 32};
  Tensor<float> half({2}, untouched);
  const DLTensor *in[] = {&ids.dl}, *out[] = {&half.dl};
  EXPECT_EQ(attn_call(halve.get(), nullptr, in, 1, out, 1, nullptr), ATTN_ERROR_VALUE);
  EXPECT_STREQ(attn_last_error(),
               "halve: argument 'ids' expected values in [0, 9], got 4294967296 at element 1");
  EXPECT_EQ(half.elements[0], untouched);
  ids.elements[1] = 0;
  EXPECT_EQ(attn_call(halve.get(), nullptr, in, 1, out, 1, nullptr), ATTN_OK);
  EXPECT_EQ(half.elements[0], 4.5f);
}

// The least value that an argument may hold is minus a symbol, or a number of any sign.
TEST_F(CheckTest, NegativeAndSmallValues) {
  Function function = createFunction(library.get(), "signed");
  Tensor<int64_t> wide({2});
  Tensor<int8_t> byte({2}), octet({2});
  Tensor<int16_t> small({2});
  octet.dl.dtype.code = kDLUInt;
  Tensor<float> y({2}, untouched);
  const DLTensor *in[] = {&wide.dl, &byte.dl, &octet.dl, &small.dl}, *out[] = {&y.dl};
  auto call = [&] { return attn_call(function.get(), nullptr, in, 4, out, 1, nullptr); };
  auto reset = [&] {
    wide.elements = {-2, 3};
    byte.elements = {-3, 9};
    octet.elements = {0, int8_t(200)};
    small.elements = {2, 9};
  };
  reset();
  EXPECT_EQ(call(), ATTN_OK) << attn_last_error();
  EXPECT_EQ(y.elements[0], -1);
  y.elements[0] = untouched;
  auto expectRefused = [&](const std::string &message) {
    EXPECT_EQ(call(), ATTN_ERROR_VALUE);
    EXPECT_EQ(attn_last_error(), "signed: argument " + message);
    EXPECT_EQ(y.elements[0], untouched);
    reset();
  };
  wide.elements[0] = -3;
  expectRefused("'wide' expected values in [-2, 3], got -3 at element 0");
  wide.elements[1] = 4;
  expectRefused("'wide' expected values in [-2, 3], got 4 at element 1");
  byte.elements[1] = -4;
  expectRefused("'byte' expected values in [-3, 9], got -4 at element 1");
  octet.elements[0] = int8_t(201);
  expectRefused("'unsigned' expected values in [0, 200], got 201 at element 0");
  small.elements[1] = 1;
  expectRefused("'short' expected values in [2, 9], got 1 at element 1");

  attn_argument argument = {};
  argument.size = sizeof argument;
  ASSERT_EQ(attn_function_argument(function.get(), ATTN_INPUT, 0, &argument), ATTN_OK);
  EXPECT_EQ(argument.bounded, 1);
  EXPECT_STREQ(argument.below.symbol, "n");
  ASSERT_EQ(attn_function_argument(function.get(), ATTN_INPUT, 3, &argument), ATTN_OK);
  EXPECT_EQ(argument.below.max, -2);
}

// A library may be wrong and have a bound for an argument of another type. The check must not read beyond the argument.
TEST_F(CheckTest, BoundOfAnotherType) {
  Function bounded = createFunction(library.get(), "bounded");
  Tensor<int8_t> mask({3});
  mask.dl.dtype.code = 6; // kDLBool
  Tensor<float> y({3}, untouched);
  const DLTensor *in[] = {&mask.dl}, *out[] = {&y.dl};
  EXPECT_EQ(attn_call(bounded.get(), nullptr, in, 1, out, 1, nullptr), ATTN_ERROR_DTYPE);
  EXPECT_STREQ(
      attn_last_error(),
      "bounded: argument 'mask' expected integers where values are bounded, got bool");
}

TEST_F(CheckTest, ProductOverflows) {
  Function halve = createFunction(library.get(), "halve");
  Tensor<int64_t> ids({1});
  Tensor<float> half({1});
  ids.shape[0] = half.shape[0] = int64_t(1) << 60;
  const DLTensor *in[] = {&ids.dl}, *out[] = {&half.dl};
  EXPECT_EQ(attn_call(halve.get(), nullptr, in, 1, out, 1, nullptr), ATTN_ERROR_SHAPE);
  EXPECT_STREQ(attn_last_error(), "halve: argument 'ids' expected less than 2^63 bytes, got more");
}

TEST_F(CheckTest, EmptyTensorsNeedNoData) {
  for (auto [batch, rows] : {std::pair<int, int>{0, 5}, {3, 0}, {0, 0}}) {
    ForwardArguments empty(batch, rows);
    int64_t strides[] = {7, 7, 7};
    empty.x.dl.data = empty.residual.dl.data = empty.y.dl.data = nullptr;
    empty.x.dl.strides = strides;
    ASSERT_EQ(empty.call(forward.get(), weights.get()), ATTN_OK) << attn_last_error();
    empty.expectResult();
  }
}

/// A function with a computed output size and computed conditions.
struct SizedTest : testing::Test {
  Library library = linkedLibrary();
  Function sized = createFunction(library.get(), "sized");

  attn_status call(int64_t a, int64_t b, int64_t size, const attn_call_options *options = nullptr) {
    // The inputs are not read, and may be larger than memory.
    float element = 0;
    std::vector<float> y(std::max<int64_t>(size, 1), untouched);
    DLTensor inputs[] = {{&element, {kDLCPU, 0}, 1, dtypeOf<float>(), &a, nullptr, 0},
                         {&element, {kDLCPU, 0}, 1, dtypeOf<float>(), &b, nullptr, 0}};
    DLTensor output = {y.data(), {kDLCPU, 0}, 1, dtypeOf<float>(), &size, nullptr, 0};
    const DLTensor *in[] = {&inputs[0], &inputs[1]}, *out[] = {&output};
    attn_status status = attn_call(sized.get(), nullptr, in, 2, out, 1, options);
    for (int64_t i = 0; i < size; ++i)
      EXPECT_EQ(y[i], status ? untouched : float(i));
    int64_t shape = -1;
    if (attn_output_shape(sized.get(), in, 2, 0, &shape) == ATTN_OK && !status)
      EXPECT_EQ(shape, size);
    return status;
  }

  void expectRefused(int64_t a, int64_t b, int64_t size, const char *message) {
    EXPECT_EQ(call(a, b, size), ATTN_ERROR_SHAPE);
    EXPECT_STREQ(attn_last_error(), message);
  }
};

TEST_F(SizedTest, SizesThatGoTogether) {
  EXPECT_EQ(call(6, 2, 10), ATTN_OK);
  EXPECT_EQ(call(5, 1, 9), ATTN_OK);
  EXPECT_EQ(call(2, 1, 3), ATTN_OK);
  attn_call_options unchecked = {};
  unchecked.size = sizeof unchecked;
  unchecked.skip_checks = 1;
  EXPECT_EQ(call(6, 2, 10, &unchecked), ATTN_OK);
}

TEST_F(SizedTest, OutputOfAnotherSize) {
  EXPECT_EQ(call(6, 2, 9), ATTN_ERROR_SHAPE);
  EXPECT_EQ(call(6, 2, 11), ATTN_ERROR_SHAPE);
}

TEST_F(SizedTest, ConditionThatDoesNotHold) {
  expectRefused(3, 3, 3, "sized: expected sizes with a != b, got a = 3, b = 3");
  expectRefused(5, 2, 8, "sized: expected sizes with b == 1 or .., got b = 2, a = 5");
  expectRefused(4000, 2, 7998, "sized: expected sizes with b == 1 or .., got b = 2, a = 4000");
}

TEST_F(SizedTest, SizeOutOfRange) {
  expectRefused(1, 3, 0, "sized: expected a size 2*a - b in [0, 9223372036854775807], got a = 1, b = 3");
}

TEST_F(SizedTest, DivisorOfZero) {
  expectRefused(4, 0, 8, "sized: expected sizes with b == 1 or .., got b = 0, a = 4");
}

TEST_F(SizedTest, SizesBeyond64Bits) {
  expectRefused(INT64_MAX, 1, 0,
                "sized: expected a size 2*a - b in [0, 9223372036854775807], got a = 9223372036854775807, b = 1");
}

} // namespace
