// Attention between positions, for LANES rows at once.
//
// A part of a panel is turned first: [group of LANES rows][column][LANES], with columns of zeros up to whole vectors. A
// vector then holds a column of LANES rows, so no sum goes over the lanes of a vector.
#pragma once

#include "products.h"

namespace ICY_NAMESPACE {

constexpr long LONGEST = 512;  // positions of an attention, and operands of one `sum_turned`
constexpr int QUERIES = 4;     // queries at once
constexpr int KEYS = 4;        // keys at once
constexpr long AHEAD = 3;      // panels are fetched before their sum reads them: they lie apart, so no processor predicts it

inline long whole_vectors(long columns) { return (columns + LANES - 1) / LANES * LANES; }

inline void turn(long rows, long columns, long distance, const float* panel, float* to) {
    for (long row = 0; row < rows; row += LANES)
        for (long c = 0; c < columns; c += LANES, to += LANES * LANES) {
            Vector v[LANES];
            const float* from = panel + c / BLOCK * distance + c % BLOCK;
            // Rows past the last repeat it.
            if (row + LANES <= rows)
                for (int i = 0; i < LANES; i++) v[i] = load(from + (row + i) * BLOCK);
            else
                for (int i = 0; i < LANES; i++) v[i] = load(from + std::min(row + i, rows - 1) * BLOCK);
            transpose(v);
            for (int i = 0; i < LANES; i++) store(to + i * LANES, c + i < columns ? v[i] : all(0));
        }
}

// Write LANES columns of LANES rows to a panel, or add them.
ICY_INLINE void turn_back(Vector* v, long rows, long row, float* to, bool add) {
    transpose(v);
    const int some = (int)std::min<long>(LANES, rows - row);
    to += row * BLOCK;
    if (add)
        for (int i = 0; i < some; i++) v[i] += load(to + i * BLOCK);
    for (int i = 0; i < some; i++) store(to + i * BLOCK, v[i]);
}

// The lines of weights of an attention: [query][key][row].
struct Lines {
    long keys, distance;  // distance of lines

    float* at(float* lines, long query, long key, long row) const {
        return lines + (query * keys + key) * distance + row;
    }
};

// One head: means of values with weights softmax(factor * query . keys), for each of `queries` positions.
struct Attention {
    const long rows, columns, distance, queries;
    const Lines lines;
    const float factor;

    // lines[i][p] = factor * x[i] . y[p], for all queries i from `first` up to I and all keys p
    template <int I>
    ICY_INLINE_MEMBER void dots(long row, long first, const float* const* x, const float* const* y, float* to) const {
        constexpr int CHAINS = I == 1 ? 2 : 1;
        const long at = row * whole_vectors(columns);
        for (long p0 = 0; p0 < lines.keys; p0 += KEYS) {
            const float *a[I], *b[KEYS], *next[KEYS];
            for (int i = 0; i < I; i++) a[i] = x[first + i] + at;
            for (int p = 0; p < KEYS; p++) b[p] = y[std::min(p0 + p, lines.keys - 1)] + at;
            for (int p = 0; p < KEYS; p++) next[p] = y[std::min(p0 + p + KEYS, lines.keys - 1)] + at;
            Vector total[CHAINS][I][KEYS];
            for (auto& some : total)
                for (auto& line : some)
                    for (Vector& one : line) one = all(0);
            // The turned columns are whole vectors, so there is an even number of them.
            for (long c = 0; c < columns; c += CHAINS)
                for (int k = 0; k < CHAINS; k++)
                    for (int p = 0; p < KEYS; p++) {
                        __builtin_prefetch(next[p] + (c + k) * LANES);
                        const Vector key = load(b[p] + (c + k) * LANES);
                        for (int i = 0; i < I; i++) total[k][i][p] += load(a[i] + (c + k) * LANES) * key;
                    }
            const int some = (int)std::min<long>(KEYS, lines.keys - p0);
            for (int i = 0; i < I; i++)
                for (int p = 0; p < KEYS; p++) {
                    if constexpr (CHAINS == 2) total[0][i][p] += total[1][i][p];
                    if (p < some) store(lines.at(to, first + i, p0 + p, row), total[0][i][p] * factor);
                }
        }
    }

    ICY_INLINE_MEMBER void dots(long row, const float* const* x, const float* const* y, float* to) const {
        long i = 0;
        for (; i + QUERIES <= queries; i += QUERIES) dots<QUERIES>(row, i, x, y, to);
        for (; i < queries; i++) dots<1>(row, i, x, y, to);
    }

    inline void forward(const float* const* query, const float* const* key, const float* const* value, float* weights,
                        float* const* mean) const;
    inline void back(float* const* grad, const float* const* value, const float* const* key, float* weights,
                     float* of_scores, float* const* turned, float* const* to_query, bool add) const;
};

// to[i] (+)= sum over k of weights[k][i] * x[k], for I panels from the first; `weights` are lines with LANES numbers of
// these rows, and lines of successive panels are `by_panel` numbers apart.
template <int I>
ICY_INLINE void some_sums(long rows, long row, long columns, long distance, const float* const* weights, long by_panel,
                          const float* const* x, long count, float* const* to, bool add) {
    constexpr int AT_ONCE = LANES / I;
    for (long c0 = 0; c0 < columns; c0 += LANES) {
        Vector found[I][LANES];
        const long at = row * whole_vectors(columns) + c0 * LANES;
        for (int c1 = 0; c1 < LANES; c1 += AT_ONCE) {
            Vector total[I][AT_ONCE];
            for (auto& line : total)
                for (Vector& one : line) one = all(0);
            for (long k = 0; k < count; k++) {
                const float *from = x[k] + at + c1 * LANES, *next = x[std::min(k + AHEAD, count - 1)] + at + c1 * LANES;
                Vector w[I];
                for (int i = 0; i < I; i++) w[i] = load(weights[k] + i * by_panel + row);
                for (int c = 0; c < AT_ONCE; c++) {
                    __builtin_prefetch(next + c * LANES);
                    const Vector one = load(from + c * LANES);
                    for (int i = 0; i < I; i++) total[i][c] += w[i] * one;
                }
            }
            for (int i = 0; i < I; i++)
                for (int c = 0; c < AT_ONCE; c++) found[i][c1 + c] = total[i][c];
        }
        for (int i = 0; i < I; i++)
            turn_back(found[i], rows, row, to[i] + c0 / BLOCK * distance + c0 % BLOCK, add);
    }
}

// The same for any number of panels.
ICY_INLINE void sums(long rows, long row, long columns, long distance, const float** weights, long by_panel,
                     const float* const* x, long count, float* const* to, long panels, bool add) {
    const auto next = [&](int some) {
        for (long k = 0; k < count; k++) weights[k] += some * by_panel;
    };
    long i = 0;
    for (; i + QUERIES <= panels; i += QUERIES, next(QUERIES))
        some_sums<QUERIES>(rows, row, columns, distance, weights, by_panel, x, count, to + i, add);
    for (; i < panels; i++, next(1))
        some_sums<1>(rows, row, columns, distance, weights, by_panel, x, count, to + i, add);
}

// to[i] (+)= sum over k of the line weights[k] + i * by_panel times x[k], for turned x and panels `to`.
inline void sum_turned(long rows, long columns, long distance, const float* const* weights, long by_panel,
                       const float* const* x, long count, float* const* to, long panels, bool add) {
    const float* lines[LONGEST];
    for (long row = 0; row < rows; row += LANES) {
        std::copy(weights, weights + count, lines);
        sums(rows, row, columns, distance, lines, by_panel, x, count, to, panels, add);
    }
}

inline void Attention::forward(const float* const* query, const float* const* key, const float* const* value,
                               float* weights, float* const* mean) const {
    const float* of_keys[LONGEST];
    for (long row = 0; row < rows; row += LANES) {
        dots(row, query, key, weights);
        for (long i = 0; i < queries; i++) {
            Vector largest = all(-INFINITY), total = all(0);
            float* const mine = lines.at(weights, i, 0, row);
            const auto each = [&](auto function) {
                for (float* w = mine; w < mine + lines.keys * lines.distance; w += lines.distance) function(w);
            };
            each([&](float* w) { largest = larger(load(w), largest); });
            each([&](float* w) {
                const Vector x = exponential(load(w) - largest);
                total += x;
                store(w, x);
            });
            const Vector inverse = 1.f / total;
            each([&](float* w) { store(w, load(w) * inverse); });
        }
        for (long p = 0; p < lines.keys; p++) of_keys[p] = lines.at(weights, 0, p, 0);
        sums(rows, row, columns, distance, of_keys, lines.keys * lines.distance, value, lines.keys, mean, queries, false);
    }
}

// Writes the turned gradients of the means, the gradients of the scores, and gradients of the queries unless they are null.
inline void Attention::back(float* const* grad, const float* const* value, const float* const* key, float* weights,
                            float* of_scores, float* const* turned, float* const* to_query, bool add) const {
    for (long i = 0; i < queries; i++) turn(rows, columns, distance, grad[i], turned[i]);
    const float* of_keys[LONGEST];
    for (long row = 0; row < rows; row += LANES) {
        dots(row, turned, value, of_scores);
        for (long i = 0; i < queries; i++) {
            Vector mean = all(0);
            const float* const w = lines.at(weights, i, 0, row);
            float* const d = lines.at(of_scores, i, 0, row);
            const long size = lines.keys * lines.distance;
            for (long p = 0; p < size; p += lines.distance) mean += load(w + p) * load(d + p);
            for (long p = 0; p < size; p += lines.distance) store(d + p, load(w + p) * (load(d + p) - mean));
        }
        if (!to_query[0]) continue;
        for (long p = 0; p < lines.keys; p++) of_keys[p] = lines.at(of_scores, 0, p, 0);
        sums(rows, row, columns, distance, of_keys, lines.keys * lines.distance, key, lines.keys, to_query, queries, add);
    }
}

}  // namespace ICY_NAMESPACE
