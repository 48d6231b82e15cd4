"""One step of a recurrent layer."""

import numpy as np

from calls import *

STATE, CELL = Y[:, :3].copy(), X[:, :3].copy()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gates(x, h, w, u, b, c, count):
    parts = x @ w.T + (0 if b is None else b), h @ u.T + (0 if c is None else c)
    return [np.split(part, count, -1) for part in parts]


def gru(x, h, *weights):
    (xr, xz, xn), (hr, hz, hn) = gates(x, h, *weights, 3)
    n = np.tanh(xn + sigmoid(xr + hr) * hn)
    return n + sigmoid(xz + hz) * (h - n)


def lstm(x, state, *weights):
    i, f, g, o = np.sum(gates(x, state[0], *weights, 4), 0)
    c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
    return [sigmoid(o) * np.tanh(c), c]


def weights(count, has_bias=True):
    draw = lambda *shape: random.standard_normal(shape).astype("float32")
    biases = [draw(3 * count), draw(3 * count)] if has_bias else [None, None]
    return dict(zip(("w_ih", "w_hh", "b_ih", "b_hh"), [draw(3 * count, 4), draw(3 * count, 3), *biases]))


for has_bias in (True, False):
    case("gru_cell.default", gru, input=X, hx=STATE, **weights(3, has_bias), near=2e-6)
    case("lstm_cell.default", lstm, input=X, hx=[STATE, CELL], **weights(4, has_bias), near=2e-6)
case("gru_cell.default", gru, input=X[0].copy(), hx=STATE[0].copy(), **weights(3), near=2e-6)
case("rnn_tanh_cell.default", lambda *args: np.tanh(np.sum(gates(*args, 1), 0)[0]), input=X, hx=STATE, **weights(1), near=2e-6)
case("rnn_relu_cell.default", lambda *args: np.maximum(np.sum(gates(*args, 1), 0)[0], 0), input=X, hx=STATE, **weights(1),
     near=2e-6)
