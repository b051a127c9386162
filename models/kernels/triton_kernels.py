"""The kernels of triton_steps: imported only if Triton is installed.

Each program works on ROWS rows of one model, over the whole of E; WIDTH is the smallest power of two that is at least
E. Inputs [stack, rows, ...] come with their strides of the stack and of rows, and have no gaps on the last axis;
outputs are contiguous. Sums over rows are written per program, [stack, program, ...], and PyTorch adds them: always in
the same order, for any stack.
"""

import triton
import triton.language as tl


@triton.jit
def _sigmoid(x):
    return 1 / (1 + tl.exp(-x))


@triton.jit
def _tanh(x):
    return 2 * _sigmoid(2 * x) - 1  # within 1.2e-7 of tanh, and exactly +-1 for large x


@triton.jit
def _places(rows, size, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """Return the model, rows [ROWS, 1] and columns [1, WIDTH] of this program, and a mask of existing places."""
    row = (tl.program_id(1) * ROWS + tl.arange(0, ROWS))[:, None]
    column = tl.arange(0, WIDTH)[None, :]
    return tl.program_id(0).to(tl.int64), row, column, (row < rows) & (column < size)


@triton.jit
def gru_forward(
    from_input, from_state, h, new, rz, n, rows, size,
    input_stack, input_row, state_stack, state_row, h_stack, h_row, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    model, row, column, there = _places(rows, size, ROWS, WIDTH)
    x = from_input + model * input_stack + row * input_row + column
    u = from_state + model * state_stack + row * state_row + column
    r = _sigmoid(tl.load(x, there, 0.0) + tl.load(u, there, 0.0))
    z = _sigmoid(tl.load(x + size, there, 0.0) + tl.load(u + size, there, 0.0))
    candidate = _tanh(tl.load(x + 2 * size, there, 0.0) + r * tl.load(u + 2 * size, there, 0.0))
    before = tl.load(h + model * h_stack + row * h_row + column, there, 0.0)
    place = model * rows + row
    tl.store(new + place * size + column, candidate + z * (before - candidate), there)
    tl.store(rz + 2 * place * size + column, r, there)
    tl.store(rz + (2 * place + 1) * size + column, z, there)
    tl.store(n + place * size + column, candidate, there)


@triton.jit
def gru_backward(
    grad, from_state, h, rz, n, to_input, to_state, to_h, rows, size,
    grad_stack, grad_row, state_stack, state_row, h_stack, h_row,
    SHARED: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    model, row, column, there = _places(rows, size, ROWS, WIDTH)
    place = model * rows + row
    r = tl.load(rz + 2 * place * size + column, there, 0.0)
    z = tl.load(rz + (2 * place + 1) * size + column, there, 0.0)
    candidate = tl.load(n + place * size + column, there, 0.0)
    g = tl.load(grad + model * grad_stack + row * grad_row + column, there, 0.0)
    before = tl.load(h + model * h_stack + row * h_row + column, there, 0.0)
    of_n = tl.load(from_state + model * state_stack + row * state_row + 2 * size + column, there, 0.0)
    tl.store(to_h + place * size + column, g * z, there)
    to_n = (g - g * z) * (1 - candidate * candidate)
    to_r = to_n * of_n * r * (1 - r)
    to_z = (before - candidate) * g * z * (1 - z)
    u = to_state + 3 * place * size + column
    tl.store(u, to_r, there)
    tl.store(u + size, to_z, there)
    tl.store(u + 2 * size, to_n * r, there)
    if SHARED:  # one row of gates for all rows: their sum over the rows of this program
        x = to_input + 3 * (model * tl.num_programs(1) + tl.program_id(1)) * size + tl.arange(0, WIDTH)
        exists = tl.arange(0, WIDTH) < size
        tl.store(x, tl.sum(to_r, 0), exists)
        tl.store(x + size, tl.sum(to_z, 0), exists)
        tl.store(x + 2 * size, tl.sum(to_n, 0), exists)
    else:
        x = to_input + 3 * place * size + column
        tl.store(x, to_r, there)
        tl.store(x + size, to_z, there)
        tl.store(x + 2 * size, to_n, there)


@triton.jit
def lstm_forward(
    gates, c, new_h, new_c, activated, tanh_c, rows, size,
    gates_stack, gates_row, c_stack, c_row, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    model, row, column, there = _places(rows, size, ROWS, WIDTH)
    x = gates + model * gates_stack + row * gates_row + column
    i = _sigmoid(tl.load(x, there, 0.0))
    f = _sigmoid(tl.load(x + size, there, 0.0))
    g = _tanh(tl.load(x + 2 * size, there, 0.0))
    o = _sigmoid(tl.load(x + 3 * size, there, 0.0))
    after = f * tl.load(c + model * c_stack + row * c_row + column, there, 0.0) + i * g
    shown = _tanh(after)
    place = model * rows + row
    tl.store(new_h + place * size + column, o * shown, there)
    tl.store(new_c + place * size + column, after, there)
    tl.store(tanh_c + place * size + column, shown, there)
    y = activated + 4 * place * size + column
    tl.store(y, i, there)
    tl.store(y + size, f, there)
    tl.store(y + 2 * size, g, there)
    tl.store(y + 3 * size, o, there)


@triton.jit
def lstm_backward(
    grad_h, grad_c, c, activated, tanh_c, to_gates, to_c, rows, size,
    grad_h_stack, grad_h_row, grad_c_stack, grad_c_row, c_stack, c_row,
    HAS_H: tl.constexpr, HAS_C: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    model, row, column, there = _places(rows, size, ROWS, WIDTH)
    place = model * rows + row
    y = activated + 4 * place * size + column
    i = tl.load(y, there, 0.0)
    f = tl.load(y + size, there, 0.0)
    g = tl.load(y + 2 * size, there, 0.0)
    o = tl.load(y + 3 * size, there, 0.0)
    before = tl.load(c + model * c_stack + row * c_row + column, there, 0.0)
    total = tl.zeros([ROWS, WIDTH], tl.float32)
    to_o = total
    if HAS_C:
        total += tl.load(grad_c + model * grad_c_stack + row * grad_c_row + column, there, 0.0)
    if HAS_H:
        shown = tl.load(tanh_c + place * size + column, there, 0.0)
        of_h = tl.load(grad_h + model * grad_h_stack + row * grad_h_row + column, there, 0.0)
        total += of_h * o * (1 - shown * shown)
        to_o = of_h * shown * o * (1 - o)
    x = to_gates + 4 * place * size + column
    tl.store(x, total * g * i * (1 - i), there)
    tl.store(x + size, total * before * f * (1 - f), there)
    tl.store(x + 2 * size, total * i * (1 - g * g), there)
    tl.store(x + 3 * size, to_o, there)
    tl.store(to_c + place * size + column, total * f, there)


@triton.jit
def highway_forward(
    gates, s, new, gate, candidate, rows, size,
    gates_stack, gates_row, s_stack, s_row, TANH: tl.constexpr, RELU: tl.constexpr,
    ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    model, row, column, there = _places(rows, size, ROWS, WIDTH)
    x = gates + model * gates_stack + row * gates_row + column
    opened = _sigmoid(tl.load(x, there, 0.0))
    shown = tl.load(x + size, there, 0.0)
    if TANH:
        shown = _tanh(shown)
    if RELU:
        shown = tl.where(shown <= 0, 0.0, shown)  # NaN stays, as in PyTorch
    before = tl.load(s + model * s_stack + row * s_row + column, there, 0.0)
    place = (model * rows + row) * size + column
    tl.store(new + place, before + opened * (shown - before), there)
    tl.store(gate + place, opened, there)
    tl.store(candidate + place, shown, there)


@triton.jit
def highway_backward(
    grad, s, gate, candidate, to_gates, to_s, rows, size,
    grad_stack, grad_row, s_stack, s_row, TANH: tl.constexpr, RELU: tl.constexpr,
    ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    model, row, column, there = _places(rows, size, ROWS, WIDTH)
    place = model * rows + row
    opened = tl.load(gate + place * size + column, there, 0.0)
    shown = tl.load(candidate + place * size + column, there, 0.0)
    g = tl.load(grad + model * grad_stack + row * grad_row + column, there, 0.0)
    before = tl.load(s + model * s_stack + row * s_row + column, there, 0.0)
    to_shown = g * opened
    kept = g - to_shown
    x = to_gates + 2 * place * size + column
    tl.store(x, (shown - before) * kept * opened, there)
    tl.store(to_s + place * size + column, kept, there)
    if TANH:
        to_shown *= 1 - shown * shown
    if RELU:
        to_shown = tl.where(shown > 0, to_shown, 0.0)
    tl.store(x + size, to_shown, there)


@triton.jit
def mix_backward(
    grad, a, b, s, to_a, to_b, to_s, rows, size,
    grad_stack, grad_row, a_stack, a_row, b_stack, b_row, s_stack, s_row,
    ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    model, row, column, there = _places(rows, size, ROWS, WIDTH)
    g = tl.load(grad + model * grad_stack + row * grad_row + column, there, 0.0)
    share = tl.load(s + model * s_stack + row * s_row, row < rows, 0.0)
    old = tl.load(a + model * a_stack + row * a_row + column, there, 0.0)
    new = tl.load(b + model * b_stack + row * b_row + column, there, 0.0)
    place = model * rows + row
    tl.store(to_a + place * size + column, g - g * share, there)
    tl.store(to_b + place * size + column, g * share, there)
    tl.store(to_s + place, tl.sum((new - old) * g, 1)[:, None], row < rows)


@triton.jit
def stop_forward(
    h, weight, bias, s, rows, size,
    h_stack, h_row, weight_stack, weight_row, bias_stack, bias_row, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    model, row, column, there = _places(rows, size, ROWS, WIDTH)
    x = tl.load(h + model * h_stack + row * h_row + column, there, 0.0)
    w = tl.load(weight + model * weight_stack + column, column < size, 0.0)
    score = tl.sum(x * w, 1) + tl.load(bias + model * bias_stack)
    tl.store(s + model * rows + row, _sigmoid(score)[:, None], row < rows)


@triton.jit
def stop_backward(
    grad, h, weight, s, to_h, to_both, rows, size,
    grad_stack, grad_row, h_stack, h_row, weight_stack, weight_row, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    model, row, column, there = _places(rows, size, ROWS, WIDTH)
    place = model * rows + row
    gate = tl.load(s + place, row < rows, 0.0)
    to_score = tl.load(grad + model * grad_stack + row * grad_row, row < rows, 0.0) * (1 - gate) * gate
    x = tl.load(h + model * h_stack + row * h_row + column, there, 0.0)
    w = tl.load(weight + model * weight_stack + column, column < size, 0.0)
    tl.store(to_h + place * size + column, to_score * w, there)
    both = to_both + (model * tl.num_programs(1) + tl.program_id(1)) * (size + 1)
    tl.store(both + tl.arange(0, WIDTH), tl.sum(to_score * x, 0), tl.arange(0, WIDTH) < size)
    tl.store(both + size, tl.sum(tl.sum(to_score, 1), 0))
