// Element-wise steps of recurrent cells, forward and backward (icy/models/kernels/cell_steps.py has their equations).
//
// Values that a step keeps for its backward pass, and later the gradients of the gates, overwrite the gates in place.
#pragma once

#include "vectors.h"

namespace ICY_NAMESPACE {

// Rows and columns of the panels that a step works on.
struct Extent {
    long rows, blocks, distance;

    // Call a function with the offset of every vector, and with its column.
    template <class F>
    ICY_INLINE_MEMBER void each(F function) const {
        each_of<LANES>(function);
    }

    // The same for several vectors at once.
    template <class F>
    ICY_INLINE_MEMBER void each_pack(F function) const {
        each_of<Pack::WIDTH>(function);
    }

    template <int STEP_OF, class F>
    ICY_INLINE_MEMBER void each_of(F function) const {
        for (long block = 0; block < blocks; block++) {
            const long first = block * distance;
            for (long i = 0; i < rows * 32; i += STEP_OF) function(first + i, block * 32 + i % 32);
        }
    }

    // The same, with sums over the rows for its totals. Half a block at a time, which is one line of the cache.
    template <int N, class F>
    ICY_INLINE_MEMBER void each_column(float* const* totals, F function) const {
        constexpr int AT_ONCE = LANES < 16 ? 16 / LANES : 1;
        for (long block = 0; block < blocks; block++)
            for (int j = 0; j < 32; j += AT_ONCE * LANES) {
                Vector sums[AT_ONCE][N];
                for (int k = 0; k < AT_ONCE; k++)
                    for (int n = 0; n < N; n++) sums[k][n] = all(0);
                for (long row = 0; row < rows; row++)
                    for (int k = 0; k < AT_ONCE; k++)
                        function(block * distance + row * 32 + j + k * LANES, block * 32 + j + k * LANES, sums[k]);
                for (int k = 0; k < AT_ONCE; k++)
                    for (int n = 0; n < N; n++)
                        if (totals[n]) {
                            float* to = totals[n] + block * 32 + j + k * LANES;
                            store(to, load(to) + sums[k][n]);
                        }
            }
    }
};

enum Activation { IDENTITY, TANH, RELU };

template <class T>
ICY_INLINE T activate(long kind, T x) {
    return kind == TANH ? tangent(x) : kind == RELU ? larger(0.f, x) : x;
}

// The derivative, from the value.
ICY_INLINE Vector slope(long kind, Vector y) {
    return kind == TANH ? 1.f - y * y : kind == RELU ? (y > 0.f ? all(1) : all(0)) : all(1);
}

// x[0..2] and s[0..2]: parts of r, z and n from input and state. Leaves r, z and n_h in s, and n in `n`.
template <bool ROW>
inline void gru(const Extent& e, const float* const* x, float* const* s, const float* h, float* n, float* out) {
    e.each_pack([&](long o, long c) {
        const long i = ROW ? c : o;
        const Pack r = sigmoid(load_pack(x[0] + i) + load_pack(s[0] + o)), z = sigmoid(load_pack(x[1] + i) + load_pack(s[1] + o));
        const Pack candidate = tangent(load_pack(x[2] + i) + r * load_pack(s[2] + o));
        store(s[0] + o, r);
        store(s[1] + o, z);
        store(n + o, candidate);
        store(out + o, candidate + z * (load_pack(h + o) - candidate));
    });
}

// Leaves the gradients of r, z and n_h in s, and of n_x in `n`; `totals` gets sums over rows of r, z, n_x and n_h.
inline void gru_back(const Extent& e, const float* grad, const float* h, float* const* s, float* n, float* to_h,
                     bool add, float* const* totals) {
    e.each_column<4>(totals, [&](long o, long, Vector* sums) {
        const Vector g = load(grad + o), r = load(s[0] + o), z = load(s[1] + o), hn = load(s[2] + o), c = load(n + o);
        const Vector through = g * z, dn = (g - through) * (1.f - c * c);
        const Vector dz = through * (1.f - z) * (load(h + o) - c), dnh = dn * r, dr = dnh * hn * (1.f - r);
        store(s[0] + o, dr);
        store(s[1] + o, dz);
        store(s[2] + o, dnh);
        store(n + o, dn);
        store(to_h + o, add ? load(to_h + o) + through : through);
        sums[0] += dr;
        sums[1] += dz;
        sums[2] += dn;
        sums[3] += dnh;
    });
}

// g: i, f, g and o, which are activated in place.
inline void lstm(const Extent& e, float* const* g, const float* c, float* new_c, float* tanh_c, float* out) {
    e.each_pack([&](long at, long) {
        const Pack i = sigmoid(load_pack(g[0] + at)), f = sigmoid(load_pack(g[1] + at)), o = sigmoid(load_pack(g[3] + at));
        const Pack candidate = tangent(load_pack(g[2] + at)), next = f * load_pack(c + at) + i * candidate, t = tangent(next);
        store(g[0] + at, i);
        store(g[1] + at, f);
        store(g[2] + at, candidate);
        store(g[3] + at, o);
        store(new_c + at, next);
        store(tanh_c + at, t);
        store(out + at, o * t);
    });
}

// Leaves the gradients of the gates in g. Either of the incoming gradients may be missing.
inline void lstm_back(const Extent& e, const float* grad, const float* grad_c, const float* c, const float* tanh_c,
                      float* const* g, float* to_c, bool add) {
    e.each([&](long at, long) {
        const Vector i = load(g[0] + at), f = load(g[1] + at), x = load(g[2] + at), o = load(g[3] + at);
        const Vector t = load(tanh_c + at), d = grad ? load(grad + at) : all(0);
        const Vector total = (grad_c ? load(grad_c + at) : all(0)) + d * o * (1.f - t * t);
        store(g[0] + at, total * x * i * (1.f - i));
        store(g[1] + at, total * load(c + at) * f * (1.f - f));
        store(g[2] + at, total * i * (1.f - x * x));
        store(g[3] + at, d * t * o * (1.f - o));
        store(to_c + at, add ? load(to_c + at) + total * f : total * f);
    });
}

// s + sigmoid(g[0]) (f(g[1]) - s); the gate and f are left in g.
template <bool ROW>
inline void highway(const Extent& e, long kind, const float* const* x, float* const* g, const float* s, float* out) {
    e.each_pack([&](long o, long c) {
        const long i = ROW ? c : o;
        const Pack gate = sigmoid(load_pack(x[0] + i)), y = activate(kind, load_pack(x[1] + i)), before = load_pack(s + o);
        store(g[0] + o, gate);
        store(g[1] + o, y);
        store(out + o, before + gate * (y - before));
    });
}

inline void highway_back(const Extent& e, long kind, const float* grad, const float* s, float* const* g, float* to_s,
                         bool add) {
    e.each([&](long o, long) {
        const Vector d = load(grad + o), gate = load(g[0] + o), y = load(g[1] + o);
        const Vector to_y = d * gate, rest = d - to_y;
        store(g[0] + o, (y - load(s + o)) * rest * gate);
        store(g[1] + o, to_y * slope(kind, y));
        store(to_s + o, add ? load(to_s + o) + rest : rest);
    });
}

// Simple recurrent unit; x: x~, f, r (without c) and x, as panels or as rows; keeps f, r and the
// activated state. w: weights of c in f and r.
template <bool ROW>
inline void sru(const Extent& e, long kind, const float* const* x, const float* const* w, const float* c, float* f,
                float* r, float* new_c, float* shown, float* out) {
    e.each_pack([&](long o, long column) {
        const long i = ROW ? column : o;
        const Pack before = load_pack(c + o), candidate = load_pack(x[0] + i);
        const Pack forget = sigmoid(load_pack(x[1] + i) + load_pack(w[0] + column) * before);
        const Pack reset = sigmoid(load_pack(x[2] + i) + load_pack(w[1] + column) * before);
        const Pack next = candidate + forget * (before - candidate), through = load_pack(x[3] + i);
        const Pack active = activate(kind, next);
        if (shown) store(shown + o, active);
        store(f + o, forget);
        store(r + o, reset);
        store(new_c + o, next);
        store(out + o, through + reset * (active - through));
    });
}

// Writes the gradients of the four gates to g, and adds the gradients of w to `totals`. One incoming gradient may be missing.
template <bool ROW>
inline void sru_back(const Extent& e, long kind, const float* grad, const float* grad_c, const float* const* x,
                     const float* const* w, const float* c, const float* f, const float* r, const float* active,
                     float* const* g, float* to_c, bool add, float* const* totals) {
    e.each_column<6>(totals, [&](long o, long column, Vector* sums) {
        const long i = ROW ? column : o;
        const Vector d = grad ? load(grad + o) : all(0), forget = load(f + o), reset = load(r + o), before = load(c + o);
        const Vector shown = load(active + o), through = d * reset;
        const Vector to_r = (shown - load(x[3] + i)) * through * (1.f - reset), to_x = d - through;
        const Vector total = (grad_c ? load(grad_c + o) : all(0)) + through * slope(kind, shown), kept = total * forget;
        const Vector to_f = (before - load(x[0] + i)) * kept * (1.f - forget), to_candidate = total - kept;
        const Vector to_before = kept + to_f * load(w[0] + column) + to_r * load(w[1] + column);
        if (g[0]) {
            store(g[0] + o, to_candidate);
            store(g[1] + o, to_f);
            store(g[2] + o, to_r);
            store(g[3] + o, to_x);
        }
        store(to_c + o, add ? load(to_c + o) + to_before : to_before);
        sums[0] += to_f * before;
        sums[1] += to_r * before;
        sums[2] += to_candidate;
        sums[3] += to_f;
        sums[4] += to_r;
        sums[5] += to_x;
    });
}

// candidate + sigmoid(f + w c) (c - candidate): an SRU without its output. Keeps the gate.
template <bool ROW>
inline void sru_state(const Extent& e, const float* const* x, const float* w, const float* c, float* gate, float* out) {
    e.each_pack([&](long o, long column) {
        const long i = ROW ? column : o;
        const Pack before = load_pack(c + o), candidate = load_pack(x[0] + i);
        const Pack forget = sigmoid(load_pack(x[1] + i) + load_pack(w + column) * before);
        store(gate + o, forget);
        store(out + o, candidate + forget * (before - candidate));
    });
}

template <bool ROW>
inline void sru_state_back(const Extent& e, const float* grad, const float* const* x, const float* w, const float* c,
                           const float* gate, float* const* g, float* to_c, bool add, float* const* totals) {
    e.each_column<3>(totals, [&](long o, long column, Vector* sums) {
        const long i = ROW ? column : o;
        const Vector d = load(grad + o), forget = load(gate + o), before = load(c + o), kept = d * forget;
        const Vector to_f = (before - load(x[0] + i)) * kept * (1.f - forget), to_candidate = d - kept;
        const Vector to_before = kept + to_f * load(w + column);
        if (g[0]) {
            store(g[0] + o, to_candidate);
            store(g[1] + o, to_f);
        }
        store(to_c + o, add ? load(to_c + o) + to_before : to_before);
        sums[0] += to_f * before;
        sums[1] += to_candidate;
        sums[2] += to_f;
    });
}

}  // namespace ICY_NAMESPACE
