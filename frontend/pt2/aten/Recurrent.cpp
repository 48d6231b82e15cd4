//===- Recurrent.cpp - one step of a recurrent layer -----------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The gates of a cell are the parts of x W^T + b and of h U^T + c, for the input x and the state h:
//   gru_cell:   r, z = sigmoid(x_r + h_r), sigmoid(x_z + h_z)     n = tanh(x_n + r * h_n)     n + z * (h - n)
//   lstm_cell:  i, f, o = sigmoid(x_i + h_i), ...   g = tanh(x_g + h_g)   c' = f * c + i * g     o * tanh(c')
//   rnn_tanh_cell, rnn_relu_cell:   tanh(x + h), max(x + h, 0)
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/AtenOps.h"
#include "frontend/pt2/Call.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace attn::graph;
using namespace attn::pt2;

/// Reads the input and the weights of a cell with the state `state`, and computes its `count` gates: first those of the
/// input, then those of the state, as operands of an elementwise op.
static FailureOr<SmallVector<Operand>> computeGates(Call &call, const Tensor &state,
                                                    int64_t count) {
  Tensor input = call.tensor("input"), ofInput = call.tensor("w_ih"), ofState = call.tensor("w_hh");
  std::optional<Tensor> biases[2];
  for (auto [name, bias] : llvm::zip(ArrayRef<StringRef>{"b_ih", "b_hh"}, biases))
    if (call.has(name))
      bias = call.tensor(name);
  if (call.failed())
    return failure();
  std::optional<Size> all =
      state.rank() > 0 ? multiply(state.sizes.back(), Size(count)) : std::nullopt;
  bool fits = all && state.rank() == input.rank() && isFloat(state.dtype) &&
              ArrayRef(input.sizes).drop_back() == ArrayRef(state.sizes).drop_back();
  for (const Tensor &weight : {ofInput, ofState})
    fits = fits && weight.rank() == 2 && weight.sizes[0] == *all;
  if (!fits)
    return call.error() << "expected a state (rows..., n) and weights (" << count
                        << " * n, k) and (" << count << " * n, n), got " << str(state.sizes) << ", "
                        << str(ofInput.sizes) << " and " << str(ofState.sizes);
  FailureOr<Tensor> first = createLinear(call, input, ofInput, biases[0]),
                    second = createLinear(call, state, ofState, biases[1]);
  if (failed(first) || failed(second))
    return failure();
  SmallVector<Operand> gates;
  const Size &size = state.sizes.back();
  for (const Tensor &product : {*first, *second})
    for (int64_t i = 0; i < count; ++i)
      gates.push_back({call.b.slice(product, product.rank() - 1, *multiply(size, Size(i)), size),
                       computeType(state.dtype)});
  return gates;
}

static Value createSigmoid(TensorBuilder &b, Value x) {
  Value one = arith::ConstantOp::create(b, b.getFloatAttr(x.getType(), 1));
  Value power = math::ExpOp::create(b, arith::NegFOp::create(b, x));
  return arith::DivFOp::create(b, one, arith::AddFOp::create(b, one, power));
}

static LogicalResult gruCell(Call &call) {
  Tensor h = call.tensor("hx");
  FailureOr<SmallVector<Operand>> operands = computeGates(call, h, 3);
  if (failed(operands))
    return failure();
  TensorBuilder &b = call.b;
  operands->push_back({h, computeType(h.dtype)});
  return call.result(b.elementwise(h.sizes, h.dtype, *operands, [&](ValueRange e) -> Value {
    Value reset = createSigmoid(b, arith::AddFOp::create(b, e[0], e[3]));
    Value update = createSigmoid(b, arith::AddFOp::create(b, e[1], e[4]));
    Value next = math::TanhOp::create(
        b, arith::AddFOp::create(b, e[2], arith::MulFOp::create(b, reset, e[5])));
    Value difference = arith::SubFOp::create(b, e[6], next);
    return arith::AddFOp::create(b, next, arith::MulFOp::create(b, update, difference));
  }));
}

static LogicalResult lstmCell(Call &call) {
  SmallVector<Tensor> state = call.tensors("hx");
  if (call.failed())
    return failure();
  if (state.size() != 2 || state[0].sizes != state[1].sizes || state[0].dtype != state[1].dtype)
    return call.error() << "expected two states of one type, got " << state.size();
  const Tensor &h = state[0], &c = state[1];
  FailureOr<SmallVector<Operand>> operands = computeGates(call, h, 4);
  if (failed(operands))
    return failure();
  TensorBuilder &b = call.b;
  DType as = computeType(h.dtype);
  auto sumOf = [&](ValueRange e, int64_t gate) -> Value {
    return arith::AddFOp::create(b, e[gate], e[4 + gate]);
  };
  operands->push_back({c, as});
  Tensor cell = b.elementwise(h.sizes, as, *operands, [&](ValueRange e) -> Value {
    Value kept = arith::MulFOp::create(b, createSigmoid(b, sumOf(e, 1)), e.back());
    Value added = arith::MulFOp::create(b, createSigmoid(b, sumOf(e, 0)),
                                        math::TanhOp::create(b, sumOf(e, 2)));
    return arith::AddFOp::create(b, kept, added);
  });
  operands->back() = {cell, as};
  Tensor next = b.elementwise(h.sizes, h.dtype, *operands, [&](ValueRange e) -> Value {
    return arith::MulFOp::create(b, createSigmoid(b, sumOf(e, 3)),
                                 math::TanhOp::create(b, e.back()));
  });
  return failed(call.result(next)) ? failure() : call.result(b.castTo(cell, c.dtype));
}

static auto rnnCell(bool isTanh) {
  return [=](Call &call) -> LogicalResult {
    Tensor h = call.tensor("hx");
    FailureOr<SmallVector<Operand>> operands = computeGates(call, h, 1);
    if (failed(operands))
      return failure();
    TensorBuilder &b = call.b;
    return call.result(b.elementwise(h.sizes, h.dtype, *operands, [&](ValueRange e) -> Value {
      Value sum = arith::AddFOp::create(b, e[0], e[1]);
      if (isTanh)
        return math::TanhOp::create(b, sum);
      Value zero = arith::ConstantOp::create(b, b.getZeroAttr(sum.getType()));
      return arith::MaximumFOp::create(b, sum, zero);
    }));
  };
}

void attn::pt2::addRecurrent(AtenOps &ops) {
  ops.add("gru_cell.default", gruCell);
  ops.add("lstm_cell.default", lstmCell);
  ops.add("rnn_tanh_cell.default", rnnCell(/*isTanh=*/true));
  ops.add("rnn_relu_cell.default", rnnCell(/*isTanh=*/false));
}
