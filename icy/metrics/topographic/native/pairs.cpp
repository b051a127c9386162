// Distances of all pairs between two ranges of a table's rows, with many pairs at a time in the lanes of vectors, and counts
// of their keys. The rows on the right are in the lanes; each row on the left meets all of them.

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "export.h"

namespace ICY_NAMESPACE {

template <typename T>
using Vector [[gnu::vector_size(ICY_VECTOR_BYTES)]] = T;
template <typename T>
constexpr int64_t LANES = ICY_VECTOR_BYTES / sizeof(T);
constexpr int64_t AT_ONCE = 4;            // vectors whose chains of operations overlap
constexpr int64_t L1_BYTES = 24 * 1024;   // size limit of a table that is read for every row on the left

template <typename T>
inline Vector<T> load(const T* place) {
    Vector<T> found;
    std::memcpy(&found, place, sizeof found);
    return found;
}

template <typename T>
T* allocate(int64_t count) {  // zeros
    void* found = std::calloc(count > 0 ? count : 1, sizeof(T));
    if (!found) std::abort();
    return static_cast<T*>(found);
}

int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

int64_t up_to_multiple(int64_t n, int64_t of) { return (n + of - 1) / of * of; }

// ---- Hamming -------------------------------------------------------------------------------------------------------

// Write to `keys` the number of equal columns among `width`, for one row of codes and the `padded` rows in `columns`,
// [width, padded]. Only `rows` of them are written.
void equal_in_row(const uint8_t* row, const uint8_t* columns, int64_t width, int64_t padded, int64_t rows, uint8_t* keys) {
    constexpr int64_t lanes = LANES<uint8_t>;
    for (int64_t j = 0; j < rows; j += AT_ONCE * lanes) {
        Vector<uint8_t> equal[AT_ONCE] = {};
        for (int64_t c = 0; c < width; c++) {
            const Vector<uint8_t> code = row[c] - Vector<uint8_t>{};
#pragma GCC unroll 4
            for (int64_t k = 0; k < AT_ONCE; k++)
                equal[k] -= (Vector<uint8_t>)(load(columns + c * padded + j + k * lanes) == code);  // true is -1
        }
        std::memcpy(keys + j, equal, smaller(sizeof equal, rows - j));
    }
}

// ---- Levenshtein ---------------------------------------------------------------------------------------------------

// Messages with at most as many tokens as T has bits. Bit t of `where[symbol][j]` says whether token t of message j is the
// symbol. `inside[j]` has one bit for each token of message j.
template <typename T>
struct Patterns {
    int64_t symbols, room;
    T *where, *inside;

    Patterns(int64_t symbols, int64_t room)
        : symbols(symbols), room(room), where(allocate<T>(symbols * room)), inside(allocate<T>(room)) {}
    ~Patterns() {
        std::free(where);
        std::free(inside);
    }

    // Put messages in, or remove them again, which costs less than clearing everything.
    void change(const uint16_t* tokens, const int32_t* lengths, int64_t width, int64_t messages) {
        for (int64_t j = 0; j < messages; j++)
            for (int64_t t = 0; t < lengths[j]; t++) {
                where[tokens[j * width + t] * room + j] ^= T(1) << t;
                inside[j] ^= T(1) << t;
            }
    }
};

// Return the number of ones in each lane.
template <typename T>
inline Vector<T> ones(Vector<T> bits) {
    constexpr T all = ~T(0);
    bits -= bits >> 1 & all / 3;
    bits = (bits & all / 15 * 3) + (bits >> 2 & all / 15 * 3);
    bits = (bits + (bits >> 4)) & all / 255 * 15;
    for (unsigned shift = 8; shift < 8 * sizeof(T); shift *= 2) bits += bits >> shift;
    return bits & 0x7f;
}

// Write to `edits` the Levenshtein distances of a message to `messages` others: the bit-parallel method of Myers 1999 in
// the form of Hyyro 2003, one step per token. Horizontal differences are kept inverted, which saves inversions. Lanes above
// the length of their message hold arbitrary values: carries and shifts only go up.
template <typename T>
void edits_in_row(const uint16_t* tokens, int64_t length, const Patterns<T>& patterns, int64_t messages, uint8_t* edits) {
    constexpr int64_t lanes = LANES<T>;
    using Bytes [[gnu::vector_size(lanes)]] = uint8_t;
    for (int64_t j = 0; j < messages; j += AT_ONCE * lanes) {
        Vector<T> more[AT_ONCE], less[AT_ONCE];  // where the distance grows or falls by one from token to token
#pragma GCC unroll 4
        for (int64_t k = 0; k < AT_ONCE; k++) more[k] = ~Vector<T>{}, less[k] = Vector<T>{};
        for (int64_t t = 0; t < length; t++) {
            const T* where = patterns.where + tokens[t] * patterns.room + j;
#pragma GCC unroll 4
            for (int64_t k = 0; k < AT_ONCE; k++) {
                const Vector<T> match = load(where + k * lanes);
                const Vector<T> same = (((match & more[k]) + more[k]) ^ more[k]) | match | less[k];  // equal, as on the diagonal
                const Vector<T> no_growth = (same | more[k]) & ~less[k], falls = more[k] & same;
                const Vector<T> shifted = no_growth + no_growth;
                more[k] = (falls + falls) | (shifted & ~same);
                less[k] = same & ~shifted;
            }
        }
        uint8_t found[AT_ONCE * lanes];
        for (int64_t k = 0; k < AT_ONCE; k++) {
            const Vector<T> inside = load(patterns.inside + j + k * lanes);
            const Vector<T> edit = T(length) + ones<T>(more[k] & inside) - ones<T>(less[k] & inside);
            const Bytes bytes = __builtin_convertvector(edit, Bytes);
            std::memcpy(found + k * lanes, &bytes, sizeof bytes);
        }
        std::memcpy(edits + j, found, smaller(sizeof found, messages - j));
    }
}

template <typename T>
void all_edits(const uint16_t* left, const int32_t* left_lengths, int64_t lefts, const uint16_t* right,
               const int32_t* right_lengths, int64_t rights, int64_t width, int64_t symbols, uint8_t* edits) {
    constexpr int64_t group = AT_ONCE * LANES<T>;
    const int64_t fitting = L1_BYTES / (int64_t(sizeof(T)) * (symbols + 1)) / group * group;
    const int64_t room = smaller(fitting > group ? fitting : group, up_to_multiple(rights, group));
    Patterns<T> patterns(symbols, room);
    for (int64_t first = 0; first < rights; first += room) {
        const int64_t some = smaller(room, rights - first);
        patterns.change(right + first * width, right_lengths + first, width, some);
        for (int64_t i = 0; i < lefts; i++)
            edits_in_row<T>(left + i * width, left_lengths[i], patterns, some, edits + i * rights + first);
        patterns.change(right + first * width, right_lengths + first, width, some);
    }
}

// ---- counting ------------------------------------------------------------------------------------------------------

// Add to `counts`, [cells], the number of occurrences of each key. Neighbors go to different tables, so that equal keys in a
// row need not wait for each other.
template <typename T>
void count(const T* keys, int64_t size, int64_t cells, int64_t* counts) {
    constexpr int64_t most_tables = 4, small = 4096;
    const int64_t tables = cells <= small ? most_tables : 1;
    uint32_t* found = allocate<uint32_t>(tables * cells);
    uint32_t* table[most_tables];
    for (int64_t k = 0; k < most_tables; k++) table[k] = found + (k % tables) * cells;
    int64_t i = 0;
    for (; i + 8 <= size; i += 8) {
        T eight[8];
        std::memcpy(eight, keys + i, sizeof eight);
#pragma GCC unroll 8
        for (int64_t k = 0; k < 8; k++) table[k % most_tables][eight[k]]++;
    }
    for (; i < size; i++) table[0][keys[i]]++;
    for (int64_t k = 0; k < tables * cells; k++) counts[k % cells] += found[k];
    std::free(found);
}

// Add to `counts`, [cells], the number of occurrences of each sum of a key of x and a key of y, over listed pairs of rows. Row i
// of x is row `order[i]` of y. The pairs of row `first + r` are those from `starts[r]` to `starts[r + 1]`: the other row, and
// the key of x.
template <typename Y>
void count_permuted(const int64_t* starts, int64_t rows, int64_t first, const int32_t* others, const uint16_t* x, const Y* y,
                    int64_t size, const int32_t* order, int64_t cells, int64_t* counts) {
    constexpr int64_t most_tables = 4, small = 1024;
    const int64_t tables = cells <= small ? most_tables : 1;
    uint32_t* found = allocate<uint32_t>(tables * cells);
    uint32_t* table[most_tables];
    for (int64_t k = 0; k < most_tables; k++) table[k] = found + (k % tables) * cells;
    for (int64_t r = 0; r < rows; r++) {
        const Y* of_row = y + order[first + r] * size;
        int64_t t = starts[r];
        for (; t + most_tables <= starts[r + 1]; t += most_tables) {
#pragma GCC unroll 4
            for (int64_t k = 0; k < most_tables; k++) table[k][x[t + k] + of_row[order[others[t + k]]]]++;
        }
        for (; t < starts[r + 1]; t++) table[0][x[t] + of_row[order[others[t]]]]++;
    }
    for (int64_t k = 0; k < tables * cells; k++) counts[k % cells] += found[k];
    std::free(found);
}

}  // namespace ICY_NAMESPACE

using namespace ICY_NAMESPACE;

// Write the number of equal columns of every pair to `keys`, [lefts, rights].
// left: codes, [lefts, width]; right: codes of the other rows, [width, padded], zeros from `rights`; `padded` is a multiple
// of 256.
ICY_EXPORT(void, equal_columns)
(const uint8_t* left, int64_t lefts, const uint8_t* right, int64_t rights, int64_t padded, int64_t width, uint8_t* keys) {
    for (int64_t i = 0; i < lefts; i++) equal_in_row(left + i * width, right, width, padded, rights, keys + i * rights);
}

// Write the Levenshtein distance of every pair of messages to `edits`, [lefts, rights].
// left, right: tokens below `symbols`, [messages, width], width at most 64; and the length of each message.
ICY_EXPORT(void, levenshtein)
(const uint16_t* left, const int32_t* left_lengths, int64_t lefts, const uint16_t* right, const int32_t* right_lengths,
 int64_t rights, int64_t width, int64_t symbols, uint8_t* edits) {
    auto all = width <= 8 ? all_edits<uint8_t> : width <= 16 ? all_edits<uint16_t> : width <= 32 ? all_edits<uint32_t>
                                                                                                 : all_edits<uint64_t>;
    all(left, left_lengths, lefts, right, right_lengths, rights, width, symbols, edits);
}

// Add to `counts`, [cells], the number of occurrences of each of `size` keys below `cells`; at most 2^32 - 1 keys of `bytes` each.
ICY_EXPORT(void, count_keys)(const void* keys, int64_t bytes, int64_t size, int64_t cells, int64_t* counts) {
    if (bytes == 1) count(static_cast<const uint8_t*>(keys), size, cells, counts);
    if (bytes == 2) count(static_cast<const uint16_t*>(keys), size, cells, counts);
    if (bytes == 4) count(static_cast<const uint32_t*>(keys), size, cells, counts);
}

// Add to `counts`, [orders, cells], the counts of `count_permuted` for each of `orders` orders of the rows, [orders, size].
// y: keys of `bytes` each, [size, size]; at most 2^32 - 1 pairs.
ICY_EXPORT(void, count_permuted)
(const int64_t* starts, int64_t rows, int64_t first, const int32_t* others, const uint16_t* x, const void* y, int64_t bytes,
 int64_t size, const int32_t* order, int64_t orders, int64_t cells, int64_t* counts) {
    for (int64_t b = 0; b < orders; b++, order += size, counts += cells) {
        if (bytes == 1)
            count_permuted(starts, rows, first, others, x, static_cast<const uint8_t*>(y), size, order, cells, counts);
        if (bytes == 2)
            count_permuted(starts, rows, first, others, x, static_cast<const uint16_t*>(y), size, order, cells, counts);
    }
}
