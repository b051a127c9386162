// Matrix products of panels.
//
// A panel holds rows of numbers in blocks of 32 columns, [block][row][32], so a product reads each operand in order. The
// matrix in a product is packed into tiles, [tile][k][TILE], once per update.
#pragma once

#include <algorithm>

#include "vectors.h"

namespace ICY_NAMESPACE {

constexpr int BLOCK = 32;          // columns of a block
constexpr int TILE = 2 * LANES;    // columns that the micro-kernel computes at once
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int STEP = 8;  // rows of the micro-kernel at once: with the columns, as many as the registers hold
#else
constexpr int STEP = 6;
#endif
constexpr long DEPTH = 4096 / TILE;  // depth of one product: its 16 KB of a tile stay in the nearest cache
constexpr int FACTORS = 6;           // largest number of factors of a product
constexpr int PAIRS = 2;             // largest number of pairs of panels of one sum of outer products
constexpr long SHARE = 1 << 15;      // numbers of a panel that stay in the next cache while others pass: 128 KB

inline long blocks(long columns) { return (columns + BLOCK - 1) / BLOCK; }
inline long tiles(long columns) { return (columns + TILE - 1) / TILE; }

// A factor of a product: `depth` columns of a panel times a packed matrix.
struct Factor {
    const float* rows;    // the first block
    const float* packed;  // the first tile
    long depth;
    long next = 0;  // numbers from a tile to the next

    // The part of a tile from one depth.
    Factor slice(long tile, long from, long distance) const {
        return {rows + from / BLOCK * distance, packed + (tile * depth + from) * TILE, std::min(DEPTH, depth - from),
                depth * TILE};
    }
};

// The last step of a product: none, the larger of 0 and the result, the result times 1 where `other` is positive and 0
// elsewhere, or the result times `other`.
struct Finish {
    enum Kind : int64_t { NONE, RELU, RELU_BACK, TIMES };
    int64_t kind;
    const float* other;

    template <int M, int V, class F>
    ICY_INLINE_MEMBER void each(Vector (&c)[M][V], F function) const {
#pragma GCC unroll 16
        for (int m = 0; m < M; m++)
#pragma GCC unroll 2
            for (int j = 0; j < V; j++) c[m][j] = function(c[m][j], load(other + m * BLOCK + j * LANES));
    }

    template <int M, int V>
    ICY_INLINE_MEMBER void fetch() const {
        if (kind > RELU)
            for (int m = 0; m < M; m++)
                for (int j = 0; j < V; j++) __builtin_prefetch(other + m * BLOCK + j * LANES);
    }

    template <int M, int V>
    ICY_INLINE_MEMBER void apply(Vector (&c)[M][V]) const {
        if (kind == RELU) each(c, [](Vector x, Vector) { return larger(all(0), x); });
        else if (kind == RELU_BACK) each(c, [](Vector x, Vector y) { return x * (y > 0.f ? all(1) : all(0)); });
        else if (kind == TIMES) each(c, [](Vector x, Vector y) { return x * y; });
    }
};

// out[M][V vectors] (+)= sum over factors of rows times their tile; `distance` is the distance between blocks.
template <int M, int V>
ICY_INLINE void multiply(const Factor* factors, int count, long distance, long row, long rows, float* out,
                         const float* bias, bool add, const Finish& finish) {
    Vector c[M][V];
    finish.fetch<M, V>();
    if (add) {
        for (int m = 0; m < M; m++)
            for (int j = 0; j < V; j++) c[m][j] = load(out + m * BLOCK + j * LANES);
    } else {
        for (int j = 0; j < V; j++) {
            const Vector first = bias ? load(bias + j * LANES) : all(0);
            for (int m = 0; m < M; m++) c[m][j] = first;
        }
    }
    for (int f = 0; f < count; f++) {
        const float* b = factors[f].packed;
        for (long k0 = 0; k0 < factors[f].depth; k0 += BLOCK) {
            const float* a = factors[f].rows + k0 / BLOCK * distance + row * BLOCK;
            const long some = std::min<long>(BLOCK, factors[f].depth - k0);
            // Fetch a part of the next tile while this one is in use.
            for (long line = BLOCK * row / rows; line < BLOCK * (row + M) / rows; line++)
                for (int j = 0; j < TILE; j += 16) __builtin_prefetch(b + factors[f].next + line * TILE + j);
            for (long k = 0; k < some; k++, b += TILE) {
                Vector y[V];
                for (int j = 0; j < V; j++) y[j] = load(b + j * LANES);
#pragma GCC unroll 16
                for (int m = 0; m < M; m++) {
                    const Vector x = all(a[m * BLOCK + k]);
                    for (int j = 0; j < V; j++) c[m][j] += x * y[j];
                }
            }
        }
    }
    finish.apply(c);
    for (int m = 0; m < M; m++)
        for (int j = 0; j < V; j++) store(out + m * BLOCK + j * LANES, c[m][j]);
}

// Rows of one tile: as many at once as the registers hold, then half as many, down to a single row.
template <int M, int V>
ICY_INLINE void multiply_rows(const Factor* factors, int count, long rows, long distance, long row, float* out,
                              const float* bias, bool add, const Finish& finish) {
    for (; row + M <= rows; row += M)
        multiply<M, V>(factors, count, distance, row, rows, out + row * BLOCK, bias, add,
                       {finish.kind, finish.other + row * BLOCK});
    if constexpr (M > 1) {
        // The remaining rows are divided evenly: 4 rows are one call of 4, not one of 3 and one of 1.
        constexpr int LESS = M > 8 ? 8 : M > 4 ? 4 : M - 1;
        if (row < rows) multiply_rows<LESS, V>(factors, count, rows, distance, row, out, bias, add, finish);
    }
}

// Panel `out` of `columns` columns (+)= sum over factors + bias. Works slice by slice of the depth, so the data of the
// panels stays in a cache from tile to tile.
inline void product(const Factor* factors, int count, long rows, long distance, long columns, float* out,
                    const float* bias, bool add, const Finish& finish = {Finish::NONE, nullptr}) {
    long deepest = 0, from = 0;
    for (int f = 0; f < count; f++) deepest = std::max(deepest, factors[f].depth);
    do {
        for (long tile = 0; tile < tiles(columns); tile++) {
            const long column = tile * TILE, at = column / BLOCK * distance + column % BLOCK;
            float* to = out + at;
            const bool last = from + DEPTH >= deepest;
            const Finish end = {last ? finish.kind : Finish::NONE, (finish.other ? finish.other : out) + at};
            const float* shift = bias ? bias + column : nullptr;
            Factor parts[FACTORS];
            int some = 0;
            for (int f = 0; f < count; f++)
                if (from < factors[f].depth) parts[some++] = factors[f].slice(tile, from, distance);
            if (columns - column <= LANES)
                multiply_rows<2 * STEP, 1>(parts, some, rows, distance, 0, to, shift, add || from, end);
            else
                multiply_rows<STEP, 2>(parts, some, rows, distance, 0, to, shift, add || from, end);
        }
    } while ((from += DEPTH) < deepest);
}

// A matrix somewhere in memory: element (i, j) at [i * by_row + j * by_column]; of a panel, columns lie in blocks.
struct Matrix {
    float* first;
    long by_row, by_column;
    long distance;  // from one block of columns to the next; 0 if it is not a panel
    bool turned;    // a panel with this matrix's columns as rows

    float* at(long i, long j) const {
        if (!distance) return first + i * by_row + j * by_column;
        if (turned) std::swap(i, j);
        return first + j / BLOCK * distance + i * BLOCK + j % BLOCK;
    }
};

// Call a function with each square of LANES rows of a matrix whose columns are contiguous: its first row, its first
// column, and its rows, with zeros beside the columns of the matrix. Return the number of rows in these squares.
template <class F>
ICY_INLINE long each_square(const float* matrix, long by_column, long rows, long columns, F function) {
    const long whole = rows / LANES * LANES;
    for (long j = 0; j < columns; j += LANES)
        for (long i = 0; i < whole; i += LANES) {
            const long some = std::min<long>(LANES, columns - j);
            Vector square[LANES];
#pragma GCC unroll 16
            for (long k = 0; k < LANES; k++) square[k] = k < some ? load(matrix + (j + k) * by_column + i) : all(0);
            transpose(square);
            function(i, j, square);
        }
    return whole;
}

// Pack a matrix [depth][columns] into tiles; padding columns of the last tiles of a block are zero.
inline void pack(const Matrix& matrix, long depth, long columns, float* packed) {
    for (long tile = 0; tile * TILE < blocks(columns) * BLOCK; tile++) {
        float* to = packed + tile * depth * TILE;
        const long first = tile * TILE, some = std::max<long>(0, std::min<long>(TILE, columns - first));
        if (some < TILE) std::memset(to, 0, sizeof(float) * depth * TILE);
        long k = 0;
        if (!matrix.distance && matrix.by_row == 1)
            k = each_square(matrix.at(0, first), matrix.by_column, depth, some, [&](long i, long j, const Vector* square) {
#pragma GCC unroll 16
                for (long n = 0; n < LANES; n++) store(to + (i + n) * TILE + j, square[n]);
            });
        for (; k < depth; k++)
            if (some == TILE && !matrix.distance && matrix.by_column == 1)
                std::memcpy(to + k * TILE, matrix.at(k, first), sizeof(float) * TILE);
            else
                for (long j = 0; j < some; j++) to[k * TILE + j] = *matrix.at(k, first + j);
    }
}

// Two panels, to be multiplied over their rows.
struct Operands {
    const float *left, *right;
};

// c[M][<=TILE] += sum over pairs and rows of left[row][m] right[row][n]; `by_row` is the distance of rows of c. `left` and
// `right` are offsets in the panels.
template <int M>
ICY_INLINE void gather_outer(const Operands* pairs, int count, long left, long next_left, long right, long rows, float* out,
                             long by_row, long some, const float* next) {
    Vector c[M][2];
    for (int m = 0; m < M; m++)  // they are too far apart for prediction
        for (int j = 0; j < TILE; j += 16) __builtin_prefetch(next + m * by_row + j, 1);
    float edge[M * TILE];
    const bool whole = some >= TILE;
    float* to = whole ? out : edge;
    const long step = whole ? by_row : TILE;
    if (!whole) {
        std::memset(edge, 0, sizeof edge);
        for (int m = 0; m < M; m++) std::memcpy(edge + m * TILE, out + m * by_row, sizeof(float) * some);
    }
    for (int m = 0; m < M; m++)
        for (int j = 0; j < 2; j++) c[m][j] = load(to + m * step + j * LANES);
    for (int p = 0; p < count; p++) {
        const float *a = pairs[p].left + left, *b = pairs[p].right + right, *fetched = pairs[p].left + next_left;
        for (long row = 0; row < rows; row++) {
            __builtin_prefetch(fetched + row * BLOCK / 4);
            const Vector b0 = load(b + row * BLOCK), b1 = load(b + row * BLOCK + LANES);
#pragma GCC unroll 8
            for (int m = 0; m < M; m++) {
                const Vector x = all(a[row * BLOCK + m]);
                c[m][0] += x * b0;
                c[m][1] += x * b1;
            }
        }
    }
    for (int m = 0; m < M; m++)
        for (int j = 0; j < 2; j++) store(to + m * step + j * LANES, c[m][j]);
    if (!whole)
        for (int m = 0; m < M; m++) std::memcpy(out + m * by_row, edge + m * TILE, sizeof(float) * some);
}

// The same for `columns` columns of a block of `left`.
inline void gather_block(const Operands* pairs, int count, long left, long distance, long columns, long right, long rows,
                         float* out, long by_row, long some) {
    long m = 0;
    while (m < columns) {
        // 32 columns are four times 6 and twice 4, instead of five times 6 and a slow 2.
        const long rest = columns - m;
        const long take = rest >= STEP && rest != STEP + 2 ? STEP : std::min<long>(rest, rest == STEP + 2 ? 4 : STEP);
        const long a = left + m, b = left + distance + m * rows;  // b: a part of the next block, to be fetched
        float* c = out + m * by_row;
        const float* next = c + take * by_row;
        m += take;
        switch (take) {
            case 1: gather_outer<1>(pairs, count, a, b, right, rows, c, by_row, some, next); break;
            case 2: gather_outer<2>(pairs, count, a, b, right, rows, c, by_row, some, next); break;
            case 3: gather_outer<3>(pairs, count, a, b, right, rows, c, by_row, some, next); break;
            case 4: gather_outer<4>(pairs, count, a, b, right, rows, c, by_row, some, next); break;
            case 5: gather_outer<5>(pairs, count, a, b, right, rows, c, by_row, some, next); break;
            case 6: gather_outer<6>(pairs, count, a, b, right, rows, c, by_row, some, next); break;
            case 7: gather_outer<7>(pairs, count, a, b, right, rows, c, by_row, some, next); break;
            default: gather_outer<STEP>(pairs, count, a, b, right, rows, c, by_row, some, next); break;
        }
    }
}

// out [left columns][right columns] += sum over pairs of left^T right, over the rows of two panels; with as many blocks of
// `left` at a time as stay in a cache while `right` passes.
inline void outer(const Operands* pairs, int count, long left_columns, long right_columns, long rows, long distance,
                  const Matrix& out) {
    const long all_blocks = blocks(left_columns), at_once = std::max(1L, SHARE / (rows * BLOCK * count));
    const long by_row = out.distance ? BLOCK : out.by_row;
    for (long first = 0; first < all_blocks; first += at_once)
        for (long n = 0; n < right_columns; n += TILE)
            for (long block = first; block < std::min(all_blocks, first + at_once); block++)
                gather_block(pairs, count, block * distance, distance,
                             std::min<long>(BLOCK, left_columns - block * BLOCK), n / BLOCK * distance + n % BLOCK, rows, out.at(block * BLOCK, n), by_row,
                             right_columns - n);
}

// total[columns] += the sum over the rows of a panel.
inline void add_rows(const float* panel, long columns, long rows, long distance, float* total) {
    for (long block = 0; block < blocks(columns); block++)
        for (int j = 0; j < BLOCK; j += LANES) {
            Vector s[4] = {all(0), all(0), all(0), all(0)};
            const float* x = panel + block * distance + j;
            long row = 0;
            for (; row + 4 <= rows; row += 4)
                for (int i = 0; i < 4; i++) s[i] += load(x + (row + i) * BLOCK);
            for (; row < rows; row++) s[0] += load(x + row * BLOCK);
            float* to = total + block * BLOCK + j;
            store(to, load(to) + ((s[0] + s[1]) + (s[2] + s[3])));
        }
}

}  // namespace ICY_NAMESPACE
