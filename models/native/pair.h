// Updates of a pair: a sender, a link and a receiver (icy.core.representations has the equations of the links).
#pragma once

#include "parts.h"

namespace ICY_NAMESPACE {

enum LinkKind : int64_t { RELAXED, ONE_HOT, DRAWN, ROUNDED, NEAREST };

struct Link {
    int64_t kind, places, choices;
    int64_t emitted;             // choices that can be emitted
    int64_t noisy;
    double temperature;
    double levels;               // values of a digit, for ROUNDED
    double commitment;           // for NEAREST
    int64_t codes;               // number of codes, for NEAREST
};

struct PairTraining {
    Link link;
    Loss loss;  // of the receiver's answers
    Optimizer optimizer;
    int64_t replicates, updates, batch, padded;          // the last: numbers from one replicate to the next
    int64_t receiver, codes;                             // first number of the receiver, and of the link
    float *parameters, *first_moments, *second_moments;  // [replicate][padded]
    const float* trained;                                // [padded]: 1, or 0 for frozen parameters; may be null
    const int64_t *meanings, *keys;                      // [update][replicate] ...
    double* losses;                                      // [replicate]
    int64_t* right;                                      // [replicate]: correct answers of all updates
    float* sent;  // [replicate][batch][places][choices]: scores of the sender at the last update
};

constexpr uint64_t ANSWERS = 1;  // as in icy.core.representations.discrete

// Memory of a chunk: the message and its gradient [row][place][choice], and numbers for the backward pass
// [place][choice][row].
struct Messages {
    float *message, *to_message, *kept;
    long rows;  // of a chunk
};

// Scatter LANES rows of a choice to rows of messages, or gather them.
ICY_INLINE void scatter(float* to, long distance, long live, Vector value) {
    for (long i = 0; i < live; i++) to[i * distance] = value[i];
}

ICY_INLINE Vector gather(const float* from, long distance, long live) {
    Vector found = all(0);
    for (long i = 0; i < live; i++) found[i] = from[i * distance];
    return found;
}

// Write the code nearest to the scores x, and the gradients of the distance; return the distance.
inline Vector nearest(const Link& link, const Vector* x, const float* codes, float* to_codes, double scale, long live,
                      Vector* code, Vector* to_scores) {
    const long values = link.emitted;
    Vector least = all(INFINITY), best = all(0);
    for (long k = 0; k < link.codes; k++) {
        Vector far = all(0);
        for (long c = 0; c < values; c++) {
            const Vector d = x[c] - codes[k * values + c];
            far += d * d;
        }
        best = far < least ? all((float)k) : best;
        least = smaller(far, least);
    }
    const float step = (float)(2 * scale), own = (float)(link.commitment * 2 * scale);
    for (long c = 0; c < values; c++) {
        for (long i = 0; i < LANES; i++) code[c][i] = codes[(long)best[i] * values + c];
        const Vector d = x[c] - code[c];
        to_scores[c] = own * d;
        for (long i = 0; i < live; i++) to_codes[(long)best[i] * values + c] -= step * d[i];
        code[c] += x[c] - x[c];  // NaN if the scores are NaN
    }
    return least * (float)((1 + link.commitment) * scale);
}

// Copy scores to rows [row][place][choice].
static void copy_scores(const Place* places, long count, long choices, long rows, long distance, float* to) {
    for (long row = 0; row < rows; row++)
        for (const Place* place = places; place < places + count; place++)
            for (long c = place->first; c < place->first + choices; c++)
                *to++ = place->scores[c / BLOCK * distance + row * BLOCK + c % BLOCK];
}

// Write the messages of some rows, from the scores of the sender. Returns the loss of the link itself.
static double send_rows(const Link& link, const Part& sender, const Messages& m, const float* codes, float* to_codes,
                        long batch, int32_t* drawn) {
    const long rows = sender.memory.rows, width = link.places * link.choices;
    const Columns at{rows, sender.distance()};
    const float rate = (float)(1 / link.temperature), levels = (float)link.levels - 1;
    Vector x[MOST_CHOICES], p[MOST_CHOICES];
    double total = 0;
    for (long row = 0; row < rows; row += LANES) {
        const long live = std::min<long>(LANES, rows - row);
        each_place<false>(at, sender.places, link.places, link.choices, row, [&](long t, const Vector* scores) {
            Vector largest = all(-INFINITY), best = all(0), whole = all(0), none = all(0);
            for (long c = 0; c < link.choices; c++) p[c] = all(0);
            for (long c = 0; c < link.emitted; c++) {
                x[c] = scores[c];
                if (link.noisy) x[c] += sender.memory.noise.gumbel(sender.memory.first + row, t, c, link.choices);
                best = x[c] > largest ? all((float)c) : best;
                largest = larger(x[c], largest);
                none += x[c] == x[c] ? all(0) : x[c];  // NaN if a score is NaN
            }
            Vector* message = p;
            if (link.kind == ROUNDED) {
                message = x;
                for (long c = 0; c < link.emitted; c++) {
                    p[c] = sigmoid(x[c]) + none;
                    const Vector shifted = p[c] * levels + 12582912.f;  // 1.5 * 2^23: rounds half to even
                    x[c] = shifted - 12582912.f;
                }
            } else if (link.kind == NEAREST) {
                message = x;
                Vector code[MOST_CHOICES];
                total += sum(first_lanes(nearest(link, x, codes, to_codes,
                                                 1. / (link.emitted * link.places * batch), live, code, p), live));
                for (long c = 0; c < link.emitted; c++) x[c] = code[c];
            } else {
                for (long c = 0; c < link.emitted; c++) whole += p[c] = exponential((x[c] - largest) * rate);
                none += largest - largest;
                for (long c = 0; c < link.emitted; c++) p[c] = p[c] / whole + none;
                if (link.kind != RELAXED) {
                    message = x;
                    for (long c = 0; c < link.emitted; c++) x[c] = (best == (float)c ? all(1) : all(0)) + none;
                }
                if (drawn)
                    for (long i = 0; i < live; i++)
                        drawn[(row + i) * link.places + t] = (int32_t)best[i];
            }
            for (long c = link.emitted; c < link.choices; c++) message[c] = all(0);
            for (long c = 0; c < link.choices; c++) {
                scatter(m.message + row * width + t * link.choices + c, width, live, message[c]);
                store(m.kept + (t * link.choices + c) * m.rows + row, p[c]);
            }
        });
    }
    return total;
}

// Convert the gradients of messages to gradients of the sender's scores.
static void return_rows(const Link& link, const Part& sender, const Messages& m) {
    const long rows = sender.memory.rows, width = link.places * link.choices;
    const Columns at{rows, sender.distance()};
    const float rate = (float)(1 / link.temperature);
    Vector g[MOST_CHOICES];
    for (long row = 0; row < rows; row += LANES) {
        const long live = std::min<long>(LANES, rows - row);
        each_place<true>(at, sender.places, link.places, link.choices, row, [&](long t, Vector* to) {
            const auto kept = [&](long c) { return load(m.kept + (t * link.choices + c) * m.rows + row); };
            Vector mean = all(0);
            for (long c = 0; c < link.emitted; c++) {
                g[c] = gather(m.to_message + row * width + t * link.choices + c, width, live);
                mean += kept(c) * g[c];
            }
            for (long c = 0; c < link.choices; c++) {
                const Vector p = kept(c);
                if (c >= link.emitted) to[c] = all(0);
                else if (link.kind == ROUNDED) to[c] = g[c] * p * (1.f - p);
                else if (link.kind == NEAREST) to[c] = g[c] + p;
                else to[c] = p * (g[c] - mean) * rate;
            }
        });
    }
}

// Memory of the updates of a pair.
struct Pair {
    Part sender, receiver;
    Messages messages;
    int32_t *tokens, *values;  // for DRAWN, the draws of each place
    float *rewards, *gains;    // of each answer; of each example
};

static double update_pair(const PairTraining& t, Pair& pair, const int64_t* meanings, uint64_t key, const float* codes,
                          float* to_codes, int64_t* right, float* sent, bool last) {
    Part &sender = pair.sender, &receiver = pair.receiver;
    const Link& link = t.link;
    const Messages& m = pair.messages;
    const bool whole = link.kind == DRAWN;  // its loss needs the rewards of all examples before a backward pass
    const long step = m.rows, width = link.places * link.choices, answers = t.loss.places;
    const Noise of_answers{counter_hash(key, ANSWERS), (long)t.batch};
    double loss = 0;
    const auto select = [&](long first) {
        const long rows = std::min<long>(step, t.batch - first), tape = whole ? first / step : 0;
        sender.select(first, rows, tape);
        receiver.select(first, rows, tape);
        sender.memory.tokens = meanings + first * sender.program->tokens;
    };
    sender.begin({key, (long)t.batch});
    receiver.begin({key, (long)t.batch});
    for (long first = 0; first < t.batch; first += step) {
        select(first);
        sender.forward();
        if (sent) copy_scores(sender.places, link.places, link.choices, sender.memory.rows, sender.distance(), sent + first * width);
        loss += send_rows(link, sender, m, codes, to_codes, t.batch, whole ? pair.tokens + first * link.places : nullptr);
        receiver.forward();
        const int64_t* targets = meanings + first * answers;
        if (right)
            *right += count_right(t.loss.choices, receiver.places, answers, receiver.memory.rows, receiver.distance(),
                                  targets, nullptr);
        if (whole) {
            draw_rows(t.loss, receiver.places, receiver.memory.rows, receiver.distance(), targets, of_answers, first,
                      pair.values + first * answers, {pair.rewards + first * answers, answers, 1});
            continue;
        }
        loss += loss_of_rows(t.loss, receiver.places, receiver.memory.rows, receiver.distance(), targets, of_answers,
                             first, last);
        std::memset(m.to_message, 0, sizeof(float) * receiver.memory.rows * width);
        receiver.backward();
        return_rows(link, sender, m);
        sender.backward();
    }
    if (whole) {
        centre(pair.rewards, t.batch * answers);
        for (long i = 0; i < t.batch; i++) {
            double mean = 0;
            for (long a = 0; a < answers; a++) mean += pair.rewards[i * answers + a];
            pair.gains[i] = (float)(mean / answers);
        }
        Loss of_tokens = t.loss;
        of_tokens.places = link.places;
        of_tokens.choices = link.choices;
        for (long first = 0; first < t.batch; first += step) {
            select(first);
            loss += reinforce_rows(t.loss, receiver.places, receiver.memory.rows, receiver.distance(),
                                   pair.values + first * answers, {pair.rewards + first * answers, answers, 1});
            receiver.backward();
            loss += reinforce_rows(of_tokens, sender.places, sender.memory.rows, sender.distance(),
                                   pair.tokens + first * link.places, {pair.gains + first, 1, 0});
            sender.backward();
        }
    }
    receiver.end();
    sender.end();
    return loss;
}

static void train_pair(const Program& of_sender, const Program& of_receiver, const PairTraining& t, long replicate,
                       Workspace space) {
    const Link& link = t.link;
    const bool whole = link.kind == DRAWN;
    const long step = of_sender.chunk, chunks = whole ? (t.batch + step - 1) / step : 1;
    const long width = link.places * link.choices, answers = t.batch * t.loss.places;
    float *parameters = t.parameters + replicate * t.padded, *gradients = space.take<float>(t.padded);
    Pair pair{Part::take(of_sender, space, parameters, gradients, chunks),
              Part::take(of_receiver, space, parameters + t.receiver, gradients + t.receiver, chunks),
              {space.take<float>(step * width), space.take<float>(step * width), space.take<float>(step * width), step},
              space.take<int32_t>(t.batch * link.places), space.take<int32_t>(answers), space.take<float>(answers),
              space.take<float>(t.batch)};
    pair.receiver.memory.input = pair.messages.message;
    pair.receiver.memory.to_input = whole ? nullptr : pair.messages.to_message;
    std::memset(gradients, 0, sizeof(float) * t.padded);  // the optimizer clears them
    for (int64_t u = 0; u < t.updates; u++) {
        const int64_t place = u * t.replicates + replicate;
        const bool last = u + 1 == t.updates;
        float* sent = t.sent && last ? t.sent + replicate * t.batch * width : nullptr;
        t.losses[replicate] = update_pair(t, pair, t.meanings + place * answers, (uint64_t)t.keys[place],
                                          parameters + t.codes, gradients + t.codes,
                                          t.right ? t.right + replicate : nullptr, sent, last);
        descend(t.optimizer, t.optimizer.step + u + 1, t.padded, t.trained, parameters, gradients,
                t.first_moments + replicate * t.padded, t.second_moments + replicate * t.padded);
    }
}

}  // namespace ICY_NAMESPACE
