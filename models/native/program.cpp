// Runs the program of a model: the operations of icy.models.native.builder, for one replicate after another. A chunk of a
// batch runs forward and backward while its saved values are in the cache.

#include "link.h"

namespace ICY_NAMESPACE {

// The operations, in the order of icy.models.native.slabs.Code.
enum Code : int64_t {
    LINEAR, OUTER, PACK, ADD_ROWS, COPY_IN, COPY_OUT, EMBED, EMBED_BACK, GRU, GRU_BACK, LSTM, LSTM_BACK, HIGHWAY,
    HIGHWAY_BACK, SRU, SRU_BACK, SRU_STATE, SRU_STATE_BACK, MIX, MIX_BACK, STOP, STOP_BACK, SOFTMAX, SOFTMAX_BACK,
    SAMPLE, APPLY, APPLY_BACK, GELU, GELU_BACK, COPY, COPY_ROW, NORM, NORM_BACK, ATTEND, ATTEND_BACK, POOL, POOL_BACK,
    INPUT, INPUT_BACK, FILL, START, PUT_ROW, COPY_ROWS, TURN, SUM_TURNED, COUNT, DIGITS, DIGITS_BACK,
    FIND_CODE, PUT_CODE, PUT_CODE_BACK, ATTRACT, ATTRACT_BACK, LINK, LINK_BACK, SPREAD, SPREAD_BACK, OF_FIRST, OF_FIRST_BACK
};

constexpr int WIDTH = 28;  // numbers of an operation
constexpr int FINISH = 23;  // number of LINEAR's arguments before its last step

struct Phase {
    const int64_t* operations;
    int64_t count;
};

struct Program {
    Phase before, forward, backward, after;  // once per update; for each chunk; for each chunk; once per update
    const int64_t* lists;                    // addresses of operations with any number of addresses
    const float* constants;
    const int64_t* places;                   // for the scores: address, address of the gradient, first column
    int64_t place_count, choices;            // of the output
    int64_t sent_count, sent_choices;        // places of a sender's scores, which follow those of the output; of pairs
    int64_t parameters;                      // numbers of a replicate
    int64_t weights, first_gradient, last_gradient;  // size of that memory, and the part of it that is cleared before an update
    int64_t tape;                            // numbers of the tape of a chunk
    int64_t chunk;                           // rows of a chunk
    int64_t tokens;                          // places of an example's input
    int64_t weighted;                        // choices of a place of the input, if the input is weights
};

struct Memory {
    float* base[5] = {};  // weights, tape, parameters, gradients, constants
    const int64_t* tokens = nullptr;
    const float* input = nullptr;
    float* to_input = nullptr;
    Noise noise{};
    long first = 0, rows = 0;
    double* extra = nullptr;  // total of the losses of operations; null if nobody asks for it
    int32_t* sent = nullptr;  // draws of a link [row][place]; null if nobody asks for them

    float* at(int64_t address) const {
        return address < 0 ? nullptr : base[address >> 48] + (address & ((1ll << 48) - 1));
    }
};

ICY_INLINE double as_double(int64_t bits) {
    double x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

// Attention between positions, forward and backward. Separate from `run` because it has to look up addresses.
struct AttentionOperation {
    const Program& program;
    const Memory& memory;
    const int64_t* a;
    const long rows, distance;

    const int64_t* read(const int64_t* next, int64_t count, float** to) const {
        for (int64_t i = 0; i < count; i++) to[i] = memory.at(*next++);
        return next;
    }

    Attention attention() const {
        return {rows, a[0], distance, a[1], {a[2], (program.chunk + BLOCK - 1) / BLOCK * BLOCK}, (float)as_double(a[4])};
    }

    void forward() const {
        float *query[LONGEST], *key[LONGEST], *value[LONGEST], *mean[LONGEST];
        const int64_t* next = read(program.lists + a[5], a[1], query);
        read(read(read(next, a[2], key), a[2], value), a[1], mean);
        attention().forward(query, key, value, memory.at(a[3]), mean);
    }

    void back() const {
        float *grad[LONGEST], *turned[LONGEST], *value[LONGEST], *key[LONGEST], *to_query[LONGEST];
        const int64_t* next = read(read(program.lists + a[7], a[1], grad), a[1], turned);
        read(read(read(next, a[2], value), a[2], key), a[1], to_query);
        attention().back(grad, value, key, memory.at(a[3]), memory.at(a[5]), turned, to_query, a[6]);
    }

    void sum() const {
        float *x[LONGEST], *weights[LONGEST], *to[LONGEST];
        read(read(read(program.lists + a[5], a[1], x), a[1], weights), a[2], to);
        sum_turned(rows, a[0], distance, weights, a[3], x, a[1], to, a[2], a[4]);
    }
};

// The link of a pair, forward and backward.
static void run_link(const Program& program, const Memory& memory, const int64_t* a, bool back) {
    const Link link{a[1], a[2], a[0], a[3], a[4], as_double(a[5]), as_double(a[6]), as_double(a[7]), a[8]};
    const long distance = BLOCK * program.chunk, line = (program.chunk + BLOCK - 1) / BLOCK * BLOCK;
    Place places[LONGEST];
    Sent sent[LONGEST];
    const int64_t* next = program.lists + a[11];
    for (int64_t t = 0; t < link.places; t++, next += 5) {
        places[t] = {memory.at(next[0]), memory.at(next[1]), next[2]};
        sent[t] = {memory.at(next[3]), memory.at(next[4])};
    }
    if (back) return return_rows(link, places, sent, memory.rows, distance, line);
    float* to_codes = memory.base[3] ? memory.at(a[10]) : nullptr;
    const double loss = send_rows(link, places, sent, memory.rows, distance, line, memory.noise, memory.first,
                                  memory.at(a[9]), to_codes, memory.sent);
    if (memory.extra) *memory.extra += loss;
}

static void run(const Program& program, const Phase& phase, const Memory& memory) {
    constexpr int MOST = 512;
    const float *xs[MOST], *ys[MOST];
    float *us[MOST], *vs[MOST];
    const auto at = [&](int64_t address) { return memory.at(address); };
    const auto some = [&](const int64_t* addresses, int count, auto** to) {
        for (int i = 0; i < count; i++) to[i] = at(addresses[i]);
    };
    for (int64_t n = 0; n < phase.count; n++) {
        const int64_t* o = phase.operations + n * WIDTH;
        const int64_t* a = o + 2;
        const long rows = o[1] < 0 ? memory.rows : o[1], distance = BLOCK * (o[1] < 0 ? program.chunk : o[1]);
        const auto e = [&](int64_t columns) { return extent(rows, columns, distance); };
        const auto panel = [&](int64_t address) { return Matrix{at(address), 0, 0, distance, false}; };
        const auto by_row = [&](auto step) { a[1] ? step(std::true_type()) : step(std::false_type()); };
        switch (o[0]) {
            case LINEAR: {  // out, columns, bias, add, count, (rows, depth, packed) ..., at FINISH: last step, and its other panel
                Factor factors[FACTORS];
                for (int f = 0; f < a[4]; f++) factors[f] = {at(a[5 + 3 * f]), at(a[7 + 3 * f]), a[6 + 3 * f]};
                product(factors, (int)a[4], rows, distance, a[1], at(a[0]), at(a[2]), a[3],
                        {a[FINISH], a[FINISH] > Finish::RELU ? at(a[FINISH + 1]) : nullptr});
                break;
            }
            case OUTER: {  // columns, columns, to, by row, distance, count, (left, right) ...
                Operands pairs[PAIRS];
                for (int p = 0; p < a[5]; p++) pairs[p] = {at(a[6 + 2 * p]), at(a[7 + 2 * p])};
                outer(pairs, (int)a[5], a[0], a[1], rows, distance, {at(a[2]), a[3], 1, a[4], false});
                break;
            }
            case PACK:  // from, by row, by column, distance, turned, depth, columns, to
                pack({at(a[0]), a[1], a[2], a[3], (bool)a[4]}, a[5], a[6], at(a[7]));
                break;
            case ADD_ROWS:  // panel, columns, to
                add_rows(at(a[0]), a[1], rows, distance, at(a[2]));
                break;
            case COPY_IN:  // from, by row, by column, to, rows, columns, factor
                copy_in({at(a[0]), a[1], a[2], 0, false}, a[4], a[5], (float)as_double(a[6]), at(a[3]), distance);
                break;
            case COPY_OUT:
                copy_out(at(a[3]), distance, a[4], a[5], (float)as_double(a[6]), {at(a[0]), a[1], a[2], 0, false});
                break;
            case EMBED:  // table, rows of it, out, columns, bias, first token, places, values
                embed(rows, a[3], distance, at(a[0]), a[1] * BLOCK, at(a[4]), memory.tokens + a[5], program.tokens,
                      a[6], a[7], at(a[2]));
                break;
            case EMBED_BACK:  // to table, rows of it, grad, columns, -, first token, places, values
                embed_back(rows, a[3], distance, at(a[2]), memory.tokens + a[5], program.tokens, a[6], a[7], at(a[0]),
                           a[1] * BLOCK);
                break;
            case GRU:  // columns, row, h, n, out, x (3), s (3)
                some(a + 5, 3, xs);
                some(a + 8, 3, us);
                by_row([&](auto row) { gru<row>(e(a[0]), xs, us, at(a[2]), at(a[3]), at(a[4])); });
                break;
            case GRU_BACK:  // columns, add, grad, h, n, to h, s (3), totals (4)
                some(a + 6, 3, us);
                some(a + 9, 4, vs);
                gru_back(e(a[0]), at(a[2]), at(a[3]), us, at(a[4]), at(a[5]), a[1], vs);
                break;
            case LSTM:  // columns, c, new c, tanh c, out, gates (4)
                some(a + 5, 4, us);
                lstm(e(a[0]), us, at(a[1]), at(a[2]), at(a[3]), at(a[4]));
                break;
            case LSTM_BACK:  // columns, add, grad, grad c, c, tanh c, to c, gates (4)
                some(a + 7, 4, us);
                lstm_back(e(a[0]), at(a[2]), at(a[3]), at(a[4]), at(a[5]), us, at(a[6]), a[1]);
                break;
            case HIGHWAY:  // columns, row, kind, s, out, x (2), gates (2)
                some(a + 5, 2, xs);
                some(a + 7, 2, us);
                by_row([&](auto row) { highway<row>(e(a[0]), a[2], xs, us, at(a[3]), at(a[4])); });
                break;
            case HIGHWAY_BACK:  // columns, add, kind, grad, s, to s, gates (2)
                some(a + 6, 2, us);
                highway_back(e(a[0]), a[2], at(a[3]), at(a[4]), us, at(a[5]), a[1]);
                break;
            case SRU:  // columns, row, kind, c, f, r, new c, active c, out, x (4), w (2)
                some(a + 9, 4, xs);
                some(a + 13, 2, ys);
                by_row([&](auto row) {
                    sru<row>(e(a[0]), a[2], xs, ys, at(a[3]), at(a[4]), at(a[5]), at(a[6]), at(a[7]), at(a[8]));
                });
                break;
            case SRU_BACK:  // columns, row, kind, add, grad, grad c, c, f, r, active c, to c, x (4), w (2), g (4), totals
                some(a + 11, 4, xs);
                some(a + 15, 2, ys);
                some(a + 17, 4, us);
                for (int i = 0; i < 6; i++) vs[i] = nullptr;
                some(program.lists + a[21], 6, vs);
                by_row([&](auto row) {
                    sru_back<row>(e(a[0]), a[2], at(a[4]), at(a[5]), xs, ys, at(a[6]), at(a[7]), at(a[8]), at(a[9]), us,
                                  at(a[10]), a[3], vs);
                });
                break;
            case SRU_STATE:  // columns, row, c, gate, out, w, x (2)
                some(a + 6, 2, xs);
                by_row([&](auto row) { sru_state<row>(e(a[0]), xs, at(a[5]), at(a[2]), at(a[3]), at(a[4])); });
                break;
            case SRU_STATE_BACK:  // columns, row, add, grad, c, gate, to c, w, x (2), g (2), totals (3)
                some(a + 8, 2, xs);
                some(a + 10, 2, us);
                some(a + 12, 3, vs);
                by_row([&](auto row) {
                    sru_state_back<row>(e(a[0]), at(a[3]), xs, at(a[7]), at(a[4]), at(a[5]), us, at(a[6]), a[2], vs);
                });
                break;
            case MIX:  // columns, a, b, s, out
                mix(e(a[0]), at(a[1]), at(a[2]), at(a[3]), at(a[4]));
                break;
            case MIX_BACK:  // columns, grad, a, b, s, to a, add, to b, add, to s, add
                mix_back(rows, a[0], distance, at(a[1]), at(a[2]), at(a[3]), at(a[4]), at(a[5]), a[6], at(a[7]), a[8],
                         at(a[9]), a[10]);
                break;
            case STOP:  // columns, h, weight, bias, s
                stop(rows, a[0], distance, at(a[1]), at(a[2]), at(a[3]), at(a[4]));
                break;
            case STOP_BACK:  // columns, grad, s, h, weight, to h, add, to weight, to bias
                stop_back(rows, a[0], distance, at(a[1]), at(a[2]), at(a[3]), at(a[4]), at(a[5]), a[6], at(a[7]),
                          at(a[8]));
                break;
            case OF_FIRST:  // s, out, s of the first row of the batch
                if (memory.first == 0) *at(a[2]) = *at(a[0]);
                std::fill_n(at(a[1]), rows, *at(a[2]));
                break;
            case OF_FIRST_BACK:  // grad, to s, add; the chunk is the whole batch
                if (!a[2]) std::fill_n(at(a[1]), rows, 0.f);
                for (long row = 0; row < rows; row++) *at(a[1]) += at(a[0])[row];
                break;
            case SOFTMAX:  // columns, x, out
                softmax(rows, a[0], distance, at(a[1]), at(a[2]));
                break;
            case SOFTMAX_BACK:  // columns, grad, y, temperature, to x, add
                softmax_back(rows, a[0], distance, at(a[1]), at(a[2]), (float)as_double(a[3]), at(a[4]), a[5]);
                break;
            case SAMPLE:  // columns, x, out, soft, step, noisy, temperature, excluded
                sample(rows, a[0], distance, at(a[1]), a[5] ? &memory.noise : nullptr, memory.first, a[4],
                       (float)as_double(a[6]), a[7], at(a[2]), at(a[3]));
                break;
            case APPLY:  // columns, kind, x, out
                apply(e(a[0]), a[1], at(a[2]), at(a[3]));
                break;
            case APPLY_BACK:  // columns, kind, grad, y, to x, add
                apply_back(e(a[0]), a[1], at(a[2]), at(a[3]), at(a[4]), a[5]);
                break;
            case GELU:  // columns, x, out, slope
                gelu(e(a[0]), at(a[1]), at(a[2]), at(a[3]));
                break;
            case GELU_BACK:  // columns, grad, slope, to x, add
                multiply_back(e(a[0]), at(a[1]), at(a[2]), at(a[3]), a[4]);
                break;
            case COPY:  // columns, from, to, factor, add
                copy(e(a[0]), at(a[1]), at(a[2]), (float)as_double(a[3]), a[4]);
                break;
            case COPY_ROW:  // columns, row, to, add
                copy_row(e(a[0]), at(a[1]), at(a[2]), a[3]);
                break;
            case NORM:  // columns, x, scale, shift, out, normal, rate
                norm(rows, a[0], distance, at(a[1]), at(a[2]), at(a[3]), at(a[4]), at(a[5]), at(a[6]));
                break;
            case NORM_BACK:  // columns, grad, normal, rate, scale, to scale, to shift, to x, addend
                norm_back(rows, a[0], distance, at(a[1]), at(a[2]), at(a[3]), at(a[4]), at(a[5]), at(a[6]), at(a[7]),
                          at(a[8]));
                break;
            case TURN:  // columns, from, to
                turn(rows, a[0], distance, at(a[1]), at(a[2]));
                break;
            case ATTEND:  // columns, queries, keys, weights, factor, list of queries, keys, values and means
                AttentionOperation{program, memory, a, rows, distance}.forward();
                break;
            case ATTEND_BACK:  // columns, queries, keys, weights, factor, gradients of scores, add, list of gradients of
                               // the means, the same turned, values, keys, and targets of the gradients of the queries
                AttentionOperation{program, memory, a, rows, distance}.back();
                break;
            case SUM_TURNED:  // columns, count, panels, numbers from panel to panel in the weights, add, list of turned
                              // panels, weights and targets
                AttentionOperation{program, memory, a, rows, distance}.sum();
                break;
            case POOL:  // columns, even, odd, out
                pool(e(a[0]), at(a[1]), at(a[2]), at(a[3]));
                break;
            case POOL_BACK:  // columns, grad, even, odd, to even, add, to odd, add
                pool_back(e(a[0]), at(a[1]), at(a[2]), at(a[3]), at(a[4]), a[5], at(a[6]), a[7]);
                break;
            case INPUT:  // columns, place, out
                for (long i = 0; i < rows; i++)
                    for (long j = 0; j < a[0]; j++)
                        *panel(a[2]).at(i, j) = memory.input
                            ? memory.input[(i * program.tokens + a[1]) * a[0] + j]
                            : (memory.tokens[i * program.tokens + a[1]] == j ? 1.f : 0.f);
                break;
            case INPUT_BACK:  // columns, place, grad
                for (long i = 0; memory.to_input && i < rows; i++)
                    for (long j = 0; j < a[0]; j++)
                        memory.to_input[(i * program.tokens + a[1]) * a[0] + j] += *panel(a[2]).at(i, j);
                break;
            case FILL: {  // columns, to, value
                const float value = (float)as_double(a[2]);
                float* to = at(a[1]);
                e(a[0]).each([&](long i, long) { store(to + i, all(value)); });
                break;
            }
            case PUT_ROW:  // columns, to, first column, row
                for (long i = 0; i < rows; i++)
                    for (long j = 0; j < a[0]; j++) *panel(a[1]).at(i, a[2] + j) = at(a[3])[j];
                break;
            case COPY_ROWS: {  // columns, from, rows of its panel, to, rows of its panel, add
                for (long block = 0; block < blocks(a[0]); block++) {
                    const float* from = at(a[1]) + block * BLOCK * a[2];
                    float* to = at(a[3]) + block * BLOCK * a[4];
                    for (long i = 0; i < rows * BLOCK; i++) to[i] = a[5] ? to[i] + from[i] : from[i];
                }
                break;
            }
            case START:  // columns, to, column that is one
                for (long i = 0; i < rows; i++)
                    for (long j = 0; j < a[0]; j++) *panel(a[1]).at(i, j) = j == a[2] ? 1.f : 0.f;
                break;
            case COUNT: {  // columns, first token, places, to, factor
                const float share = (float)as_double(a[4]);
                const Matrix to = panel(a[3]);
                for (long i = 0; i < rows; i++) {
                    for (long j = 0; j < a[0]; j++) *to.at(i, j) = 0.f;
                    for (long p = 0; p < a[2]; p++) *to.at(i, memory.tokens[i * program.tokens + a[1] + p]) += share;
                }
                break;
            }
            case DIGITS:  // columns, x, out, sigmoids, columns that are digits, largest digit
                digits(e(a[0]), a[4], (float)as_double(a[5]), at(a[1]), at(a[2]), at(a[3]));
                break;
            case DIGITS_BACK:  // columns, grad, sigmoids, to x, add
                digits_back(e(a[0]), at(a[1]), at(a[2]), at(a[3]), a[4]);
                break;
            case SPREAD:  // digits, x, out, shares, their range, largest digit
                spread(rows, a[0], (float)as_double(a[5]), panel(a[1]), panel(a[2]), panel(a[3]), at(a[4]));
                break;
            case SPREAD_BACK:  // digits, grad, shares, their range, to x, add
                spread_back(rows, a[0], panel(a[1]), panel(a[2]), *at(a[3]), panel(a[4]), a[5]);
                break;
            case FIND_CODE:  // columns, x, codes, number of codes, to
                nearest_codes(rows, a[0], distance, at(a[1]), at(a[2]), a[3], at(a[4]));
                break;
            case PUT_CODE:  // columns, codes, chosen codes, out
                put_codes(rows, a[0], distance, at(a[1]), at(a[2]), at(a[3]));
                break;
            case PUT_CODE_BACK:  // columns, grad, to x, add, columns of x
                copy_columns(e(a[4]), a[0], at(a[1]), at(a[2]), a[3]);
                break;
            case ATTRACT:  // columns, x, codes, chosen codes, commitment, positions
                if (memory.extra) *memory.extra += attract(rows, a[0], distance, at(a[1]), at(a[2]), at(a[3])) *
                                                   (1 + as_double(a[4])) / (a[0] * a[5] * memory.noise.batch);
                break;
            case ATTRACT_BACK: {  // columns, x, codes, chosen codes, commitment, positions, to x, add, to codes, columns of x
                if (!a[7]) copy_columns(e(a[9]), 0, at(a[6]), at(a[6]), false);
                const double scale = 2. / (a[0] * a[5] * memory.noise.batch);
                attract_back(rows, a[0], distance, at(a[1]), at(a[2]), at(a[3]), (float)(scale * as_double(a[4])),
                             (float)scale, at(a[6]), at(a[8]));
                break;
            }
            case LINK:  // choices, kind, places, emitted, noisy, temperature, levels, commitment, number of codes, codes,
                        // gradients of codes, list of each place's scores, their gradient, first column, message, kept
                run_link(program, memory, a, false);
                break;
            case LINK_BACK:  // the same, with the gradient of the message
                run_link(program, memory, a, true);
                break;
        }
    }
}

enum : int64_t { ADAM, RMSPROP };

struct Optimizer {
    double rate, clip;  // no clipping if not positive
    int64_t step;       // number of earlier updates
    int64_t kind;
};

// Not std::pow, which needs a newer glibc than wheels may require.
static double power(double base, int64_t exponent) {
    double found = 1;
    for (; exponent; exponent /= 2, base *= base)
        if (exponent % 2) found *= base;
    return found;
}

// Descend along the gradient g of the parameters that are trained, or of all if `trained` is null, and clear it.
static void descend(const Optimizer& optimizer, int64_t step, long n, const float* trained, float* p, float* g, float* m,
                    float* v) {
    if (trained)
        for (long i = 0; i < n; i++) g[i] *= trained[i];
    double squares = 0;
    for (long i = 0; i < n; i += 1 << 12) {
        Vector s[4] = {all(0), all(0), all(0), all(0)};
        const long end = std::min<long>(n, i + (1 << 12));
        for (long j = i; j < end; j += 4 * LANES)
            for (int k = 0; k < 4; k++) {
                const Vector x = load(g + j + k * LANES);
                s[k] += x * x;
            }
        squares += sum((s[0] + s[1]) + (s[2] + s[3]));
    }
    float scale = 1;
    if (optimizer.clip > 0) {
        const double limit = optimizer.clip / (std::sqrt(squares) + 1e-6);
        scale = limit < 1 ? (float)limit : limit >= 1 ? 1.f : (float)limit;  // NaN stays
    }
    if (optimizer.kind == RMSPROP) {
        const float rate = (float)optimizer.rate;
        for (long i = 0; i < n; i += LANES) {
            const Vector x = load(g + i) * scale, square = load(v + i) * 0.99f + x * x * 0.01f;
            store(g + i, all(0));
            store(v + i, square);
            Vector root;
            for (int j = 0; j < LANES; j++) root[j] = std::sqrt(square[j]);
            store(p + i, load(p + i) - rate * x / (root + 1e-8f));
        }
        return;
    }
    const double first = 1 - power(0.9, step), second = std::sqrt(1 - power(0.999, step));
    const float rate = (float)(optimizer.rate / first), inverse = (float)(1 / second);
    for (long i = 0; i < n; i += LANES) {
        const Vector x = load(g + i) * scale, a = load(m + i), b = load(v + i);
        const Vector mean = a + (x - a) * 0.1f, square = b * 0.999f + x * x * 0.001f;
        store(g + i, all(0));
        store(m + i, mean);
        store(v + i, square);
        Vector root;
        for (int j = 0; j < LANES; j++) root[j] = std::sqrt(square[j]);
        store(p + i, load(p + i) - rate * mean / (root * inverse + 1e-8f));
    }
}

// Draws of meanings, and their messages from tables (icy.training.batches does the same in PyTorch).
struct Draws {
    int64_t batches, replicates, batch, attributes, length, first;  // the last: number of the first batch
    const int64_t* sizes;              // number of values of each attribute
    const int64_t *keys, *rows;        // for each replicate: its key, and its first row in the tables
    const uint8_t* tables;             // [row][length]
    int64_t *meanings, *messages;      // [batch][replicate][example] ...
};

struct Drawn {
    int64_t *meanings, *messages;  // [example][attribute] and [example][length]
};

constexpr int BITS = 31;         // of a draw
constexpr int64_t AT_ONCE = 64;  // messages on their way from memory

// Random bits for each attribute of some examples of a batch.
static void draw_bits(const Draws& d, int64_t replicate, int64_t number, int64_t first, int64_t count, int64_t* bits) {
    const uint64_t key = d.keys[replicate], start = ((d.first + number) * d.batch + first) * d.attributes;
    for (int64_t i = 0; i < count * d.attributes; i++) bits[i] = (int64_t)(counter_hash(key, start + i) >> (64 - BITS));
}

// Convert the bits of a meaning to its values in place; return the number of the meaning.
ICY_INLINE int64_t meaning_of_bits(const Draws& d, int64_t* meaning) {
    int64_t row = 0;
    for (int64_t a = 0; a < d.attributes; a++) {
        meaning[a] = meaning[a] * d.sizes[a] >> BITS;
        row = row * d.sizes[a] + meaning[a];
    }
    return row;
}

// Draw examples of a batch of a replicate.
static void draw_some(const Draws& d, int64_t replicate, int64_t number, int64_t first_example, int64_t count,
                      const Drawn& to) {
    draw_bits(d, replicate, number, first_example, count, to.meanings);
    const uint8_t *table = d.tables + d.rows[replicate] * d.length, *found[AT_ONCE];
    for (int64_t first = 0; first < count; first += AT_ONCE) {
        const int64_t some = std::min(AT_ONCE, count - first);
        for (int64_t i = 0; i < some; i++) {
            found[i] = table + meaning_of_bits(d, to.meanings + (first + i) * d.attributes) * d.length;
            __builtin_prefetch(found[i]);
        }
        for (int64_t i = 0; i < some; i++)
            for (int64_t t = 0; t < d.length; t++) to.messages[(first + i) * d.length + t] = found[i][t];
    }
}

// Write some meanings of the space, from number `first` on, and their messages.
static void list_some(const Draws& d, int64_t replicate, int64_t first, int64_t count, const Drawn& to) {
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = first + i;
        for (int64_t a = d.attributes - 1; a >= 0; a--) {
            to.meanings[i * d.attributes + a] = rest % d.sizes[a];
            rest /= d.sizes[a];
        }
        const uint8_t* message = d.tables + (d.rows[replicate] + first + i) * d.length;
        for (int64_t t = 0; t < d.length; t++) to.messages[i * d.length + t] = message[t];
    }
}

// Count how often a batch contains each meaning of the space; `work` holds `at_once` meanings.
static void count_meanings(const Draws& d, int64_t replicate, int64_t size, int64_t* work, int64_t at_once, float* counts) {
    std::memset(counts, 0, sizeof(float) * size);
    for (int64_t first = 0; first < d.batch; first += at_once) {
        const int64_t some = std::min(at_once, d.batch - first);
        draw_bits(d, replicate, 0, first, some, work);
        for (int64_t i = 0; i < some; i++) counts[meaning_of_bits(d, work + i * d.attributes)] += 1.f;
    }
}

// Updates of a probe, a pair or a game. Fields that only some of them have are zero for the others.
struct Training {
    const Program *program, *talk, *judge;  // of a game, `program` sees what is shown; others have only `program`
    Loss loss;                              // of the output; not of a game
    Optimizer optimizer;
    int64_t replicates, updates, batch, padded;          // the last: numbers from one replicate to the next
    int64_t targets, candidates, shown;                  // of a turn; the sender sees `shown` objects, targets first
    float *parameters, *first_moments, *second_moments;  // [replicate][padded]
    const float* trained;                                // [padded]: 1, or 0 for frozen parameters; may be null
    const int64_t *inputs, *answers, *keys;              // [update][replicate] ...; of a game, objects and candidates
    double* losses;                                      // [replicate]
    const Draws* draws;                                  // draws inputs and answers instead; may be null
    int64_t of_meanings;                                 // whether drawn meanings are the inputs, or the answers
    int64_t* right;                                      // [replicate]: correct answers of all updates; may be null
    float* sent;  // [replicate][batch][places][choices]: a sender's scores at the last update; may be null
};

static void find_places(const Program& program, const Memory& memory, Place* places) {
    for (int64_t i = 0; i < program.place_count + program.sent_count; i++) {
        const int64_t* p = program.places + 3 * i;
        places[i] = {memory.at(p[0]), memory.at(p[1]), p[2]};
    }
}

// Work memory of a call, divided into parts. The caller owns it, so a steady update allocates nothing.
constexpr int64_t ALIGNMENT = 64;  // bytes

struct Workspace {
    char *first, *next;

    // Without memory, only counts bytes.
    explicit Workspace(void* memory)
        : first(memory ? static_cast<char*>(memory) : reinterpret_cast<char*>(ALIGNMENT)), next(first) {}

    int64_t taken() const { return next - first; }

    template <class T>
    T* take(int64_t count) {
        T* found = reinterpret_cast<T*>(next);
        next += (count * sizeof(T) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        return found;
    }
};

static Place* take_places(const Program& program, Workspace& space) {
    return space.take<Place>(program.place_count + program.sent_count);
}

static Drawn take_drawn(const Draws& d, int64_t examples, Workspace& space) {
    int64_t* meanings = space.take<int64_t>(examples * d.attributes);
    return {meanings, space.take<int64_t>(examples * d.length)};
}

// One pass of a stack, for a caller with its own loss. The caller owns the tapes, from forward to backward.
struct Pass {
    int64_t batch, padded;
    float *parameters, *gradients;  // [replicate][padded]
    const int64_t* tokens;          // [replicate][batch][tokens], or
    const float* input;             // [replicate][batch][tokens][weighted]
    float* to_input;
    const int64_t* keys;  // [replicate]
    float* scores;        // [replicate][batch][places][choices]: written forward; in the backward pass, their gradient
    const int64_t* targets;  // [replicate][batch][places], or null
    int64_t* right;          // [replicate]: with targets, the number of correct largest scores, instead of scores
    float* tapes;  // [replicate]: weights, and a tape per chunk; null without a backward pass
    const Draws* draws;   // to count right: draws tokens and targets; may be null
    int64_t of_meanings;  // whether drawn meanings are the tokens, or the targets
};

// Return the number of places with the largest score (the first of equal scores) at the target, where each row counts as
// one or as its count.
static int64_t count_right(long choices, const Place* places, long count, long rows, long distance,
                           const int64_t* targets, const float* counts) {
    const Columns at{rows, distance};
    int64_t right = 0;
    for (long row = 0; row < rows; row += LANES) {
        const Vector each = counts ? column_of(counts, 1, 0, row, rows) : all(1);
        Vector found = all(0);
        each_place<false>(at, places, count, choices, row, [&](long t, const Vector* x) {
            Vector largest = all(-INFINITY), best = all(0);
            for (long c = 0; c < choices; c++) {
                best = x[c] > largest ? all((float)c) : best;
                largest = larger(x[c], largest);
            }
            found += best == column_of(targets, count, t, row, rows) ? each : all(0);
        });
        right += (int64_t)sum(first_lanes(found, (int)std::min<long>(LANES, rows - row)));
    }
    return right;
}

// Whether an evaluation of drawn meanings can instead read each meaning of the space once and count how often it is drawn:
// there are fewer meanings, scores do not depend on the place in the batch, and float counts are exact.
static bool counts_meanings(const Program& program, const Pass& p, int64_t size) {
    for (int64_t n = 0; n < program.forward.count; n++) {
        const int64_t* o = program.forward.operations + n * WIDTH;
        if ((o[0] == SAMPLE && o[7]) || o[0] == OF_FIRST) return false;  // with noise, or the first example's gate
    }
    return size <= p.batch && p.batch * program.place_count < 1 << 24;
}

// Returns the bytes of work memory. Without memory, does nothing else.
static int64_t pass_one(const Program& program, const Pass& p, long replicate, bool back, void* workspace) {
    Workspace space(workspace);
    const long chunks = (p.batch + program.chunk - 1) / program.chunk;
    Place* places = take_places(program, space);
    float* kept = p.tapes ? p.tapes + replicate * (program.weights + chunks * program.tape) : nullptr;
    float* own = kept ? nullptr : space.take<float>(program.tape);
    Memory memory;
    memory.base[0] = kept ? kept : space.take<float>(program.weights);
    memory.base[2] = p.parameters + replicate * p.padded;
    memory.base[3] = p.gradients ? p.gradients + replicate * p.padded : nullptr;
    memory.base[4] = const_cast<float*>(program.constants);
    const Drawn drawn = p.draws ? take_drawn(*p.draws, program.chunk, space) : Drawn{};
    int64_t examples = p.batch;
    float* counts = nullptr;
    if (p.draws) {
        int64_t size = 1;
        for (int64_t a = 0; a < p.draws->attributes; a++) size *= p.draws->sizes[a];
        if (counts_meanings(program, p, size)) counts = space.take<float>(examples = size);
    }
    if (!workspace) return space.taken();
    memory.noise = {p.keys ? (uint64_t)p.keys[replicate] : 0, p.batch};
    if (counts) count_meanings(*p.draws, replicate, examples, drawn.meanings, program.chunk, counts);
    if (!back) run(program, program.before, memory);
    else
        std::memset(memory.base[0] + program.first_gradient, 0,
                    sizeof(float) * (program.last_gradient - program.first_gradient));
    for (long chunk = 0, first = 0; first < examples; chunk++, first += program.chunk) {
        memory.first = first;
        memory.rows = std::min<long>(program.chunk, examples - first);
        memory.base[1] = kept ? kept + program.weights + chunk * program.tape : own;
        const long at = replicate * p.batch + first;
        memory.tokens = p.tokens ? p.tokens + at * program.tokens : nullptr;
        memory.input = p.input ? p.input + at * program.tokens * program.weighted : nullptr;
        memory.to_input = p.to_input ? p.to_input + at * program.tokens * program.weighted : nullptr;
        const int64_t* targets = p.targets ? p.targets + at * program.place_count : nullptr;
        if (p.draws) {
            if (counts) list_some(*p.draws, replicate, first, memory.rows, drawn);
            else draw_some(*p.draws, replicate, 0, first, memory.rows, drawn);
            memory.tokens = p.of_meanings ? drawn.meanings : drawn.messages;
            targets = p.of_meanings ? drawn.messages : drawn.meanings;
        }
        find_places(program, memory, places);
        if (!back) run(program, program.forward, memory);
        if (targets) {
            p.right[replicate] += count_right(program.choices, places, program.place_count, memory.rows,
                                              program.chunk * BLOCK, targets, counts ? counts + first : nullptr);
            continue;
        }
        float* scores = p.scores + at * program.place_count * program.choices;
        const long distance = program.chunk * BLOCK;
        for (long row = 0; row < memory.rows; row++)
            for (const Place* place = places; place < places + program.place_count; place++)
                for (long c = place->first; c < place->first + program.choices; c++, scores++) {
                    const long o = c / BLOCK * distance + row * BLOCK + c % BLOCK;
                    if (back) place->grad[o] = *scores;
                    else *scores = place->scores[o];
                }
        if (back) run(program, program.backward, memory);
    }
    if (back) run(program, program.after, memory);
    return space.taken();
}

}  // namespace ICY_NAMESPACE

#include "games.h"
#include "updates.h"

using namespace ICY_NAMESPACE;

// Draw for one replicate.
ICY_EXPORT(void, icy_draw)(const Draws* d, int64_t replicate) {
    for (int64_t b = 0; b < d->batches; b++) {
        const int64_t place = (b * d->replicates + replicate) * d->batch;
        const Drawn to{d->meanings + place * d->attributes, d->messages + place * d->length};
        draw_some(*d, replicate, b, 0, d->batch, to);
    }
}

// Update one replicate `updates` times. Returns the bytes of work memory; without memory, does nothing else.
ICY_EXPORT(int64_t, icy_train)(const Training* t, int64_t replicate, void* workspace) {
    const NoSubnormals in_this_call;
    return t->judge ? train_one<GameUpdates>(*t, replicate, workspace) : train_one<Updates>(*t, replicate, workspace);
}

// Compute the scores of one replicate, or in the backward pass the gradients of its parameters and input. Returns the bytes
// of work memory; without memory, does nothing else.
ICY_EXPORT(int64_t, icy_pass)(const Program* program, const Pass* pass, int64_t replicate, int64_t back, void* workspace) {
    const NoSubnormals in_this_call;
    return pass_one(*program, *pass, replicate, back, workspace);
}
