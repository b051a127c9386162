// Layers between the cells: embeddings, gates, norms, and the symbols that a sender feeds back.
#pragma once

#include "attention.h"
#include "cells.h"
#include "noise.h"

namespace ICY_NAMESPACE {

inline Extent extent(long rows, long columns, long distance) { return {rows, blocks(columns), distance}; }

// -- matrices and panels ------------------------------------------------------------------------------------------------

// Call a function with each number of a matrix and of a panel, in one row from a column on.
template <class F>
ICY_INLINE void each_pair(const Matrix& matrix, const Matrix& panel, long row, long first, long columns, F function) {
    for (long j = first, next; j < columns; j = next) {
        next = std::min(columns, j / BLOCK * BLOCK + BLOCK);
        float *x = matrix.at(row, j), *y = panel.at(row, j);
        if (matrix.by_column == 1)
            for (long k = 0; k < next - j; k++) function(x[k], y[k]);
        else
            for (long k = 0; k < next - j; k++) function(x[k * matrix.by_column], y[k]);
    }
}

// panel = factor * matrix
inline void copy_in(const Matrix& matrix, long rows, long columns, float factor, float* to, long distance) {
    const Matrix panel{to, 0, 0, distance, false};
    long done = 0;
    if (matrix.by_row == 1 && matrix.by_column != 1)
        done = each_square(matrix.first, matrix.by_column, rows, columns, [&](long i, long j, const Vector* square) {
#pragma GCC unroll 16
            for (long k = 0; k < LANES; k++) store(panel.at(i + k, j), square[k] * factor);
        });
    for (long i = done; i < rows; i++)
        each_pair(matrix, panel, i, 0, columns, [&](float& x, float& y) { y = x * factor; });
}

// matrix += factor * panel
inline void copy_out(const float* from, long distance, long rows, long columns, float factor, const Matrix& matrix) {
    const Matrix panel{const_cast<float*>(from), 0, 0, distance, false};
    const bool squares = matrix.by_row == 1 && matrix.by_column != 1;
    const long whole_rows = squares ? rows / LANES * LANES : 0, whole_columns = squares ? columns / LANES * LANES : 0;
    for (long first = 0; first < whole_columns; first += LANES)
        each_square(panel.at(0, first), BLOCK, LANES, whole_rows, [&](long, long i, const Vector* square) {
#pragma GCC unroll 16
            for (long k = 0; k < LANES; k++) {
                float* x = matrix.at(i, first + k);
                store(x, load(x) + square[k] * factor);
            }
        });
    for (long i = 0; i < rows; i++)
        each_pair(matrix, panel, i, i < whole_rows ? whole_columns : 0, columns, [&](float& x, float& y) { x += y * factor; });
}

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

constexpr long MOST_CHOICES = 1024;

// Columns of LANES rows of a panel as vectors, from row `row` on. A panel is read and written in squares of LANES columns.
struct Columns {
    long rows, distance;
    static constexpr long MOST = MOST_CHOICES + 2 * LANES;  // vectors of a buffer for MOST_CHOICES columns

    // Read columns to a buffer, and return the first of them in it; rows past the last repeat it.
    ICY_INLINE_MEMBER Vector* read(const float* panel, long row, long first, long count, Vector* buffer) const {
        const long skipped = first % LANES, last = std::min<long>(LANES, rows - row) - 1;
        for (long c = 0; c < skipped + count; c += LANES) {
            const float* x = square_of(panel, row, first - skipped + c);
            Vector square[LANES];
#pragma GCC unroll 16
            for (long i = 0; i < LANES; i++) square[i] = load(x + (last == LANES - 1 ? i : std::min(i, last)) * 32);
            transpose(square);
#pragma GCC unroll 16
            for (long i = 0; i < LANES; i++) buffer[c + i] = square[i];
        }
        return buffer + skipped;
    }

    // Write columns from a buffer that `read` filled, and nothing beside them.
    ICY_INLINE_MEMBER void write(float* panel, long row, long first, long count, const Vector* buffer) const {
        const long skipped = first % LANES, live = std::min<long>(LANES, rows - row);
        for (long c = 0; c < skipped + count; c += LANES) {
            float* x = const_cast<float*>(square_of(panel, row, first - skipped + c));
            Vector square[LANES];
#pragma GCC unroll 16
            for (long i = 0; i < LANES; i++) square[i] = buffer[c + i];
            transpose(square);
            const int from = (int)std::max(0L, skipped - c), until = (int)std::min<long>(LANES, skipped + count - c);
            const Integers own = (lanes() >= from) & (lanes() < until);
            const bool whole = until - from == LANES;
#pragma GCC unroll 16
            for (long i = 0; i < LANES; i++)
                if (i < live) store(x + i * 32, whole ? square[i] : own ? square[i] : load(x + i * 32));
        }
    }

    ICY_INLINE_MEMBER const float* square_of(const float* panel, long row, long c) const {
        return panel + c / 32 * distance + c % 32 + row * 32;
    }
};

// Replace scores of LANES rows by probabilities; return the logarithm of their sum of exponentials.
ICY_INLINE Vector probabilities(Vector* p, long choices) {
    Vector largest = all(-INFINITY), total = all(0);
    for (long c = 0; c < choices; c++) largest = larger(p[c], largest);
    for (long c = 0; c < choices; c++) total += p[c] = exponential(p[c] - largest);
    const Vector inverse = 1.f / total;
    for (long c = 0; c < choices; c++) p[c] *= inverse;
    return logarithm(total) + largest;
}

inline void softmax(long rows, long choices, long distance, const float* x, float* out) {
    const Columns at{rows, distance};
    Vector p[Columns::MOST];
    for (long row = 0; row < rows; row += LANES) {
        probabilities(at.read(x, row, 0, choices, p), choices);
        at.write(out, row, 0, choices, p);
    }
}

// Gradient of the softmax of x / temperature, from its value.
inline void softmax_back(long rows, long choices, long distance, const float* grad, const float* y, float temperature,
                         float* to_x, bool add) {
    const Columns at{rows, distance};
    Vector d[Columns::MOST], p[Columns::MOST];
    for (long row = 0; row < rows; row += LANES) {
        at.read(grad, row, 0, choices, d);
        at.read(y, row, 0, choices, p);
        Vector mean = all(0);
        for (long c = 0; c < choices; c++) mean += d[c] * p[c];
        for (long c = 0; c < choices; c++) d[c] = p[c] * (d[c] - mean) * (1.f / temperature);
        if (add) {
            at.read(to_x, row, 0, choices, p);
            for (long c = 0; c < choices; c++) d[c] += p[c];
        }
        at.write(to_x, row, 0, choices, d);
    }
}

// The one-hot vector of the largest of x plus noise, and the softmax of their sum over the temperature; either may be
// missing. The last `excluded` columns are not drawn.
inline void sample(long rows, long choices, long distance, const float* x, const Noise* noise, long first_example,
                   long step, float temperature, long excluded, float* out, float* soft) {
    const Columns at{rows, distance};
    Vector p[Columns::MOST], drawn[Columns::MOST];
    const long allowed = choices - excluded;
    for (long row = 0; row < rows; row += LANES) {
        at.read(x, row, 0, choices, p);
        Vector largest = all(-INFINITY), place = all(0);
        for (long c = allowed; c < choices; c++) p[c] = all(0);
        for (long c = 0; c < allowed; c++) {
            if (noise) p[c] += noise->gumbel(first_example + row, step, c, choices);
            place = p[c] > largest ? all((float)c) : place;
            largest = larger(p[c], largest);
        }
        for (long c = 0; c < choices; c++) drawn[c] = place == (float)c ? all(1) : all(0);
        if (out) at.write(out, row, 0, choices, drawn);
        if (!soft) continue;
        Vector total = all(0);
        for (long c = 0; c < allowed; c++) total += p[c] = exponential((p[c] - largest) * (1.f / temperature));
        for (long c = 0; c < choices; c++) p[c] = p[c] / total;
        at.write(soft, row, 0, choices, p);
    }
}

// The sigmoids of the first `count` columns times `most`, rounded half to even; keeps the sigmoids. Others are zero.
inline void digits(const Extent& e, long count, float most, const float* x, float* out, float* unit) {
    constexpr float ROUND = 12582912.f;  // 1.5 * 2^23: the sum is rounded to whole numbers
    e.each([&](long o, long c) {
        const Vector u = first_lanes(sigmoid(load(x + o)), (int)std::min<long>(LANES, std::max(0L, count - c)));
        store(unit + o, u);
        store(out + o, (u * most + ROUND) - ROUND);
    });
}

// The gradient of the sigmoids.
inline void digits_back(const Extent& e, const float* grad, const float* unit, float* to_x, bool add) {
    e.each([&](long o, long) {
        const Vector u = load(unit + o), d = load(grad + o) * u * (1.f - u);
        store(to_x + o, add ? load(to_x + o) + d : d);
    });
}

// Call a function with the row and column of each digit.
template <class F>
ICY_INLINE void each_digit(long rows, long count, F function) {
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < count; j++) function(i, j);
}

// As `digits`, from the range of all scores of a batch in place of sigmoids; keeps their shares of it, and its size.
inline void spread(long rows, long count, float most, const Matrix& x, const Matrix& out, const Matrix& unit, float* size) {
    float least = INFINITY, largest = -INFINITY;
    each_digit(rows, count, [&](long i, long j) {
        least = std::min(least, *x.at(i, j));
        largest = std::max(largest, *x.at(i, j));
    });
    *size = largest - least;
    each_digit(rows, count, [&](long i, long j) {
        const float above = *x.at(i, j) - least, u = *size == 0 ? above + .5f : above / *size;
        *unit.at(i, j) = u;
        *out.at(i, j) = std::nearbyint(u * most);  // half to even
    });
    for (long i = 0; i < rows; i++) *out.at(i, count) = 0;
}

// The gradient of the shares: of the score itself, and of the least and the largest score, shared by those equal to it.
inline void spread_back(long rows, long count, const Matrix& grad, const Matrix& unit, float size, const Matrix& to, bool add) {
    const bool flat = size == 0;
    const float scale = flat ? 1 : 1 / size;
    double total = 0, of_largest = 0;
    long tops = 0, bottoms = 0;
    each_digit(rows, count, [&](long i, long j) {
        const float u = *unit.at(i, j), g = *grad.at(i, j) * scale;
        total += g;
        of_largest += flat ? 0 : g * u;
        tops += u == 1;
        bottoms += flat || u == 0;
    });
    const float of_top = (float)(of_largest / tops), of_bottom = (float)((total - of_largest) / bottoms);
    each_digit(rows, count, [&](long i, long j) {
        const float u = *unit.at(i, j);
        const float d = *grad.at(i, j) * scale - (u == 1 ? of_top : 0) - (flat || u == 0 ? of_bottom : 0);
        *to.at(i, j) = add ? *to.at(i, j) + d : d;
    });
    for (long i = 0; i < rows && !add; i++) *to.at(i, count) = 0;
}

// -- codes of a codebook -------------------------------------------------------------------------------------------------

// to (+)= the first `count` columns of from; other columns are zero.
inline void copy_columns(const Extent& e, long count, const float* from, float* to, bool add) {
    e.each([&](long o, long c) {
        const Vector x = first_lanes(load(from + o), (int)std::min<long>(LANES, std::max(0L, count - c)));
        store(to + o, add ? load(to + o) + x : x);
    });
}

// Call a function with the vectors of a row and of a code, for the code's columns.
template <class F>
ICY_INLINE void each_of_code(long row, long columns, long distance, const float* code, F function) {
    RowVectors{columns, distance}.each(row, [&](long o, long c) {
        const long some = std::min<long>(LANES, columns - c);
        alignas(64) float own[LANES] = {0};
        std::memcpy(own, code + c, sizeof(float) * some);
        function(o, c, load(own), (int)some);
    });
}

inline float distance_of(long row, long columns, long distance, const float* x, const float* code) {
    Vector total = all(0);
    each_of_code(row, columns, distance, code, [&](long o, long, Vector own, int some) {
        const Vector d = first_lanes(load(x + o) - own, some);
        total += d * d;
    });
    return sum(total);
}

// The index of the nearest code of each row; the first of equally near codes, and of scores that are not numbers.
inline void nearest_codes(long rows, long columns, long distance, const float* x, const float* codes, long count,
                          float* to) {
    for (long row = 0; row < rows; row++) {
        float least = INFINITY;
        to[row] = 0;
        for (long k = 0; k < count; k++) {
            const float far = distance_of(row, columns, distance, x, codes + k * columns);
            if (far < least) to[row] = (float)k;
            least = far < least ? far : least;
        }
    }
}

inline void put_codes(long rows, long columns, long distance, const float* codes, const float* chosen, float* out) {
    for (long row = 0; row < rows; row++) {
        const float* code = codes + (long)chosen[row] * columns;
        for (long c = 0; c <= columns; c++) out[c / 32 * distance + row * 32 + c % 32] = c < columns ? code[c] : 0.f;
    }
}

// Sum of the squared distances of rows from their codes.
inline double attract(long rows, long columns, long distance, const float* x, const float* codes, const float* chosen) {
    double total = 0;
    for (long row = 0; row < rows; row++)
        total += distance_of(row, columns, distance, x, codes + (long)chosen[row] * columns);
    return total;
}

// Add the gradients of the squared distances, with factors for rows and for codes; `to_codes` may be missing.
inline void attract_back(long rows, long columns, long distance, const float* x, const float* codes,
                         const float* chosen, float of_rows, float of_codes, float* to_x, float* to_codes) {
    for (long row = 0; row < rows; row++) {
        const long first = (long)chosen[row] * columns;
        for (long c = 0; c < columns; c++) {
            const long o = c / 32 * distance + row * 32 + c % 32;
            const float d = x[o] - codes[first + c];
            to_x[o] += of_rows * d;
            if (to_codes) to_codes[first + c] -= of_codes * d;
        }
    }
}

}  // namespace ICY_NAMESPACE
