// Layers between the cells: embeddings, gates, norms, and the symbols that a sender feeds back.
#pragma once

#include "attention.h"
#include "cells.h"
#include "noise.h"

namespace ICY_NAMESPACE {

inline Extent extent(long rows, long columns, long distance) { return {rows, blocks(columns), distance}; }

// -- element by element ------------------------------------------------------------------------------------------------

// to (+)= factor * from
inline void copy(const Extent& e, const float* from, float* to, float factor, bool add) {
    e.each([&](long o, long) {
        const Vector x = load(from + o) * factor;
        store(to + o, add ? load(to + o) + x : x);
    });
}

inline void copy_row(const Extent& e, const float* row, float* to, bool add) {
    e.each([&](long o, long c) { store(to + o, add ? load(to + o) + load(row + c) : load(row + c)); });
}

inline void apply(const Extent& e, long kind, const float* x, float* out) {
    e.each_pack([&](long o, long) { store(out + o, activate(kind, load_pack(x + o))); });
}

inline void apply_back(const Extent& e, long kind, const float* grad, const float* y, float* to_x, bool add) {
    e.each([&](long o, long) {
        const Vector d = load(grad + o) * slope(kind, load(y + o));
        store(to_x + o, add ? load(to_x + o) + d : d);
    });
}

// The normal distribution function and x times its density (Abramowitz and Stegun 7.1.26: erf to 1.5e-7).
ICY_INLINE void normal_distribution(Vector x, Vector& below, Vector& slope_times_x) {
    const Vector z = x * 0.70710678f, size = larger(z, -z), t = 1.f / (1.f + 0.3275911f * size);
    Vector p = all(1.061405429f);
    p = p * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    const Vector density = moderate_exponential(larger(-87.f, -z * z)), rest = 0.5f * p * t * density;
    below = z > 0.f ? 1.f - rest : rest;
    slope_times_x = x * density * 0.3989422804f;
}

// Also writes the slope at x, unless it is null. The slope may take the place of x.
inline void gelu(const Extent& e, const float* x, float* out, float* slope) {
    e.each([&](long o, long) {
        const Vector value = load(x + o);
        Vector below, other;
        normal_distribution(value, below, other);
        store(out + o, value * below);
        if (slope) store(slope + o, below + other);
    });
}

inline void multiply_back(const Extent& e, const float* grad, const float* slope, float* to_x, bool add) {
    e.each([&](long o, long) {
        const Vector d = load(grad + o) * load(slope + o);
        store(to_x + o, add ? load(to_x + o) + d : d);
    });
}

// relu(max(even, odd))
inline void pool(const Extent& e, const float* even, const float* odd, float* out) {
    e.each([&](long o, long) { store(out + o, larger(all(0), larger(load(odd + o), load(even + o)))); });
}

inline void pool_back(const Extent& e, const float* grad, const float* even, const float* odd, float* to_even,
                      bool add_even, float* to_odd, bool add_odd) {
    e.each([&](long o, long) {
        const Vector a = load(even + o), b = load(odd + o), d = load(grad + o), zero = all(0);
        const Vector live = larger(b, a) > 0.f ? d : zero;
        const Vector of_even = a >= b ? live : zero, of_odd = a >= b ? zero : live;
        store(to_even + o, add_even ? load(to_even + o) + of_even : of_even);
        store(to_odd + o, add_odd ? load(to_odd + o) + of_odd : of_odd);
    });
}

// -- one number per row ------------------------------------------------------------------------------------------------

// The vectors of a row with `columns` columns in blocks; the padding of the last block reads as zero.
struct RowVectors {
    const long columns, distance;

    template <class F>
    ICY_INLINE_MEMBER void each(long row, F function) const {
        for (long c = 0; c < columns; c += LANES) function(c / 32 * distance + row * 32 + c % 32, c);
    }

    ICY_INLINE_MEMBER Vector exact(Vector x, long c) const {
        return c + LANES <= columns ? x : first_lanes(x, (int)(columns - c));
    }
};

// a + s (b - a), with one s per row; without b, a - s a.
inline void mix(const Extent& e, const float* a, const float* b, const float* s, float* out) {
    for (long block = 0; block < e.blocks; block++)
        for (long row = 0; row < e.rows; row++) {
            const Vector share = all(s[row]);
            for (int j = 0; j < 32; j += LANES) {
                const long o = block * e.distance + row * 32 + j;
                const Vector x = load(a + o);
                store(out + o, x + share * ((b ? load(b + o) : all(0)) - x));
            }
        }
}

inline void mix_back(long rows, long columns, long distance, const float* grad, const float* a, const float* b,
                     const float* s, float* to_a, bool add_a, float* to_b, bool add_b, float* to_s, bool add_s) {
    const RowVectors vectors{columns, distance};
    for (long row = 0; row < rows; row++) {
        const Vector share = all(s[row]);
        Vector total = all(0);
        vectors.each(row, [&](long o, long c) {
            const Vector d = load(grad + o), through = d * share;
            total += vectors.exact(d * ((b ? load(b + o) : all(0)) - load(a + o)), c);
            const Vector kept = d - through;
            store(to_a + o, add_a ? load(to_a + o) + kept : kept);
            if (to_b) store(to_b + o, add_b ? load(to_b + o) + through : through);
        });
        to_s[row] = (add_s ? to_s[row] : 0.f) + sum(total);
    }
}

// s = sigmoid(h . weight + bias)
inline void stop(long rows, long columns, long distance, const float* h, const float* weight, const float* bias,
                 float* s) {
    const RowVectors vectors{columns, distance};
    for (long row = 0; row < rows; row++) {
        Vector total = all(0);
        vectors.each(row, [&](long o, long c) { total += vectors.exact(load(h + o) * load(weight + c), c); });
        s[row] = sum(total) + bias[0];
    }
    for (long row = 0; row < rows; row += LANES) {
        alignas(64) float some[LANES] = {0};
        const long count = std::min<long>(LANES, rows - row);
        std::memcpy(some, s + row, sizeof(float) * count);
        store(some, sigmoid(load(some)));
        std::memcpy(s + row, some, sizeof(float) * count);
    }
}

inline void stop_back(long rows, long columns, long distance, float* grad, const float* s, const float* h,
                      const float* weight, float* to_h, bool add, float* to_weight, float* to_bias) {
    float total = 0;
    for (long row = 0; row < rows; row++) {
        grad[row] *= s[row] * (1.f - s[row]);
        total += grad[row];
    }
    to_bias[0] += total;
    for (long block = 0; block < blocks(columns); block++)
        for (int j = 0; j < 32; j += LANES) {
            const Vector w = load(weight + block * 32 + j);
            Vector of_weight = all(0);
            for (long row = 0; row < rows; row++) {
                const long o = block * distance + row * 32 + j;
                const Vector d = all(grad[row]);
                of_weight += d * load(h + o);
                store(to_h + o, add ? load(to_h + o) + d * w : d * w);
            }
            float* to = to_weight + block * 32 + j;
            store(to, load(to) + of_weight);
        }
}

// -- layer norm --------------------------------------------------------------------------------------------------------

constexpr float EPSILON = 1e-5f;

// scale (x - mean) / sqrt(variance + epsilon) + shift; keeps the normalized rows, and one rate per row.
inline void norm(long rows, long columns, long distance, const float* x, const float* scale, const float* shift,
                 float* out, float* normal, float* rate) {
    const RowVectors vectors{columns, distance};
    for (long row = 0; row < rows; row++) {
        Vector total = all(0), squares = all(0);
        vectors.each(row, [&](long o, long c) { total += vectors.exact(load(x + o), c); });
        const float mean = sum(total) / columns;
        vectors.each(row, [&](long o, long c) {
            const Vector d = vectors.exact(load(x + o) - mean, c);
            squares += d * d;
        });
        rate[row] = 1.f / std::sqrt(sum(squares) / columns + EPSILON);
        vectors.each(row, [&](long o, long c) {
            const Vector y = (load(x + o) - mean) * rate[row];
            store(normal + o, y);
            const Vector scaled = y * load(scale + c);
            store(out + o, shift ? scaled + load(shift + c) : scaled);
        });
    }
}

inline void norm_back(long rows, long columns, long distance, const float* grad, const float* normal,
                      const float* rate, const float* scale, float* to_scale, float* to_shift, float* to_x,
                      const float* addend) {
    float* const totals[2] = {to_scale, to_shift};
    extent(rows, columns, distance).each_column<2>(totals, [&](long o, long, Vector* sums) {
        const Vector d = load(grad + o);
        sums[0] += d * load(normal + o);
        sums[1] += d;
    });
    const RowVectors vectors{columns, distance};
    for (long row = 0; row < rows; row++) {
        Vector first = all(0), second = all(0);
        vectors.each(row, [&](long o, long c) {
            const Vector d = vectors.exact(load(grad + o) * load(scale + c), c);
            first += d;
            second += d * load(normal + o);
        });
        const float a = sum(first) / columns, b = sum(second) / columns;
        vectors.each(row, [&](long o, long c) {
            const Vector d = (load(grad + o) * load(scale + c) - a - load(normal + o) * b) * rate[row];
            store(to_x + o, addend ? load(addend + o) + d : d);
        });
    }
}

// -- symbols -----------------------------------------------------------------------------------------------------------

constexpr long PLACES_AT_ONCE = 16;

// Call a function with each row, and the offsets in a table's blocks of the rows that some of the row's tokens choose.
template <class F>
ICY_INLINE void each_choice(long rows, const int64_t* tokens, long token_distance, long places, long values, F function) {
    for (long p0 = 0; p0 < places; p0 += PLACES_AT_ONCE) {
        const long some = std::min(PLACES_AT_ONCE, places - p0);
        for (long row = 0; row < rows; row++) {
            long chosen[PLACES_AT_ONCE];
            for (long p = 0; p < some; p++)
                chosen[p] = ((p0 + p) * values + tokens[row * token_distance + p0 + p]) * BLOCK;
            function(row, chosen, some, p0 == 0);
        }
    }
}

// out[row] = bias + sum of the rows of a table, place * values + token[place], over the tokens of a row's example.
inline void embed(long rows, long columns, long distance, const float* table, long table_distance, const float* bias,
                  const int64_t* tokens, long token_distance, long places, long values, float* out) {
    each_choice(rows, tokens, token_distance, places, values, [&](long row, const long* chosen, long some, bool first) {
        for (long block = 0; block < blocks(columns); block++) {
            const float* from = table + block * table_distance;
            float* to = out + block * distance + row * BLOCK;
            for (int j = 0; j < BLOCK; j += LANES) {
                Vector total = !first ? load(to + j) : bias ? load(bias + block * BLOCK + j) : all(0);
                for (long p = 0; p < some; p++) total += load(from + chosen[p] + j);
                store(to + j, total);
            }
        }
    });
}

inline void embed_back(long rows, long columns, long distance, const float* grad, const int64_t* tokens,
                       long token_distance, long places, long values, float* to_table, long table_distance) {
    each_choice(rows, tokens, token_distance, places, values, [&](long row, const long* chosen, long some, bool) {
        for (long block = 0; block < blocks(columns); block++) {
            const float* from = grad + block * distance + row * BLOCK;
            float* to = to_table + block * table_distance;
            for (int j = 0; j < BLOCK; j += LANES) {
                const Vector d = load(from + j);
                for (long p = 0; p < some; p++) store(to + chosen[p] + j, load(to + chosen[p] + j) + d);
            }
        }
    });
}

// Column `c` of LANES rows of a panel, as a vector; rows past the last repeat it.
struct Columns {
    long rows, distance;

    ICY_INLINE_MEMBER Vector get(const float* panel, long row, long c) const {
        const float* x = panel + c / 32 * distance + c % 32 + row * 32;
        float found[LANES];
        if (row + LANES <= rows)
            for (long i = 0; i < LANES; i++) found[i] = x[i * 32];
        else
            for (long i = 0; i < LANES; i++) found[i] = x[std::min(i, rows - 1 - row) * 32];
        return load(found);
    }

    ICY_INLINE_MEMBER void put(float* panel, long row, long c, Vector value) const {
        float* x = panel + c / 32 * distance + c % 32 + row * 32;
        float some[LANES];
        store(some, value);
        if (row + LANES <= rows)
            for (long i = 0; i < LANES; i++) x[i * 32] = some[i];
        else
            for (long i = 0; i < rows - row; i++) x[i * 32] = some[i];
    }
};

constexpr long MOST_CHOICES = 1024;

// Probabilities of some columns for LANES rows; returns the logarithm of their sum of exponentials.
ICY_INLINE Vector probabilities(const Columns& at, const float* panel, long row, long first, long choices, Vector* p) {
    Vector largest = all(-INFINITY), total = all(0);
    for (long c = 0; c < choices; c++) largest = larger(p[c] = at.get(panel, row, first + c), largest);
    for (long c = 0; c < choices; c++) total += p[c] = exponential(p[c] - largest);
    const Vector inverse = 1.f / total;
    for (long c = 0; c < choices; c++) p[c] *= inverse;
    return logarithm(total) + largest;
}

inline void softmax(long rows, long choices, long distance, const float* x, float* out) {
    const Columns at{rows, distance};
    Vector p[MOST_CHOICES];
    for (long row = 0; row < rows; row += LANES) {
        probabilities(at, x, row, 0, choices, p);
        for (long c = 0; c < choices; c++) at.put(out, row, c, p[c]);
    }
}

// Gradient of the softmax of x / temperature, from its value.
inline void softmax_back(long rows, long choices, long distance, const float* grad, const float* y, float temperature,
                         float* to_x, bool add) {
    const Columns at{rows, distance};
    Vector d[MOST_CHOICES];
    for (long row = 0; row < rows; row += LANES) {
        Vector mean = all(0);
        for (long c = 0; c < choices; c++) mean += (d[c] = at.get(grad, row, c)) * at.get(y, row, c);
        for (long c = 0; c < choices; c++) {
            const Vector x = at.get(y, row, c) * (d[c] - mean) * (1.f / temperature);
            at.put(to_x, row, c, add ? at.get(to_x, row, c) + x : x);
        }
    }
}

// The one-hot vector of the largest of x plus noise; with `soft`, the softmax of their sum over the temperature too.
inline void sample(long rows, long choices, long distance, const float* x, const Noise* noise, long first_example,
                   long step, float temperature, float* out, float* soft) {
    const Columns at{rows, distance};
    Vector p[MOST_CHOICES];
    for (long row = 0; row < rows; row += LANES) {
        Vector largest = all(-INFINITY), place = all(0);
        for (long c = 0; c < choices; c++) {
            p[c] = at.get(x, row, c);
            if (noise) p[c] += noise->gumbel(first_example + row, step, c, choices);
            place = p[c] > largest ? all((float)c) : place;
            largest = larger(p[c], largest);
        }
        for (long c = 0; c < choices; c++) at.put(out, row, c, place == (float)c ? all(1) : all(0));
        if (!soft) continue;
        Vector total = all(0);
        for (long c = 0; c < choices; c++) total += p[c] = exponential((p[c] - largest) * (1.f / temperature));
        for (long c = 0; c < choices; c++) at.put(soft, row, c, p[c] / total);
    }
}

}  // namespace ICY_NAMESPACE
