// The link of a pair: a sender's scores become messages (icy.core.representations has the equations), and gradients of
// messages become gradients of the scores.
#pragma once

#include "losses.h"

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

// Panels of one place: the message or its gradient; and numbers for the backward pass, [choice][row].
struct Sent {
    float *message, *kept;
};

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
        for (long i = 0; to_codes && i < live; i++) to_codes[(long)best[i] * values + c] -= step * d[i];
        code[c] += x[c] - x[c];  // NaN if the scores are NaN
    }
    return least * (float)((1 + link.commitment) * scale);
}

// Write the messages of some rows, from the scores of the sender, and the draws if somebody asks for them. `line` is the
// distance of choices in what is kept. Returns the loss of the link itself.
inline double send_rows(const Link& link, const Place* places, const Sent* sent, long rows, long distance, long line,
                        const Noise& noise, long first, const float* codes, float* to_codes, int32_t* drawn) {
    const Columns at{rows, distance};
    const float rate = (float)(1 / link.temperature), levels = (float)link.levels - 1;
    Vector x[Columns::MOST], p[Columns::MOST];
    double total = 0;
    for (long row = 0; row < rows; row += LANES) {
        const long live = std::min<long>(LANES, rows - row);
        each_place<false>(at, places, link.places, link.choices, row, [&](long t, const Vector* scores) {
            Vector largest = all(-INFINITY), best = all(0), whole = all(0), none = all(0);
            for (long c = 0; c < link.choices; c++) p[c] = all(0);
            for (long c = 0; c < link.emitted; c++) {
                x[c] = scores[c];
                if (link.noisy) x[c] += noise.gumbel(first + row, t, c, link.choices);
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
                                                 1. / (link.emitted * link.places * noise.batch), live, code, p), live));
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
                    for (long i = 0; i < live; i++) drawn[(row + i) * link.places + t] = (int32_t)best[i];
            }
            for (long c = link.emitted; c < link.choices; c++) message[c] = all(0);
            at.write(sent[t].message, row, 0, link.choices, message);
            for (long c = 0; sent[t].kept && c < link.choices; c++) store(sent[t].kept + c * line + row, p[c]);
        });
    }
    return total;
}

// Convert the gradients of messages to gradients of the sender's scores.
inline void return_rows(const Link& link, const Place* places, const Sent* sent, long rows, long distance, long line) {
    const Columns at{rows, distance};
    const float rate = (float)(1 / link.temperature);
    Vector buffer[Columns::MOST];
    for (long row = 0; row < rows; row += LANES)
        each_place<true>(at, places, link.places, link.choices, row, [&](long t, Vector* to) {
            const auto kept = [&](long c) { return load(sent[t].kept + c * line + row); };
            const Vector* g = at.read(sent[t].message, row, 0, link.choices, buffer);
            Vector mean = all(0);
            for (long c = 0; c < link.emitted; c++) mean += kept(c) * g[c];
            for (long c = 0; c < link.choices; c++) {
                const Vector p = kept(c);
                if (c >= link.emitted) to[c] = all(0);
                else if (link.kind == ROUNDED) to[c] = g[c] * p * (1.f - p);
                else if (link.kind == NEAREST) to[c] = g[c] + p;
                else to[c] = p * (g[c] - mean) * rate;
            }
        });
}

}  // namespace ICY_NAMESPACE
