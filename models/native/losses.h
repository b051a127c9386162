// Losses of the representations and their gradients (icy.core.representations has the equations).
#pragma once

#include "layers.h"

namespace ICY_NAMESPACE {

enum LossKind { CROSS_ENTROPY, STRAIGHT_THROUGH, LEAST_SQUARES, REINFORCE };

struct Loss {
    int64_t kind, places, choices;
    int64_t end;            // target after which places do not count, or -1
    double scale;           // factor of the loss of one place of one example
    double temperature;     // for STRAIGHT_THROUGH
    double reward, entropy;  // weights of REINFORCE
};

// Location of the scores of a place, and of their gradients: panels, and the first column in them.
struct Place {
    const float* scores;
    float* grad;
    long first;
};

// The number of places of some rows up to the first end, which counts too.
inline long counted_places(const Loss& loss, const int64_t* targets, long rows) {
    if (loss.end < 0) return rows * loss.places;
    long count = 0;
    for (long row = 0; row < rows; row++)
        for (long t = 0; t < loss.places; t++, count++)
            if (targets[row * loss.places + t] == loss.end) {
                count++;
                break;
            }
    return count;
}

constexpr float INSIDE_LOG = 1e-8f;
constexpr double SMALLEST_DEVIATION = 0.1;

// The loss of some rows, from example `first`; writes its gradient. Not for REINFORCE.
inline double loss_of_rows(const Loss& loss, const Place* places, long rows, long distance, const int64_t* targets,
                           const Noise& noise, long first) {
    const Columns at{rows, distance};
    Vector p[MOST_CHOICES], x[MOST_CHOICES];
    const float scale = (float)loss.scale, rate = 1.f / (float)loss.temperature;
    double total = 0;
    for (long row = 0; row < rows; row += LANES) {
        const int live = (int)std::min<long>(LANES, rows - row);
        Vector sums = all(0);
        auto counts = sums == sums;
        for (long t = 0; t < loss.places; t++) {
            const Place& place = places[t];
            const Vector before = sums;
            Vector target;
            for (long i = 0; i < LANES; i++)
                target[i] = (float)targets[std::min(row + i, rows - 1) * loss.places + t];
            if (loss.kind == CROSS_ENTROPY) {
                Vector largest = all(-INFINITY), chosen = all(0), whole = all(0);
                for (long c = 0; c < loss.choices; c++) {
                    p[c] = at.get(place.scores, row, place.first + c);
                    chosen = target == (float)c ? p[c] : chosen;
                    largest = larger(p[c], largest);
                }
                for (long c = 0; c < loss.choices; c++) whole += p[c] = exponential(p[c] - largest);
                const Vector inverse = scale / whole;
                for (long c = 0; c < loss.choices; c++) {
                    const Vector share = p[c] * inverse;
                    const Vector slope = target == (float)c ? share - scale : share;
                    at.put(place.grad, row, place.first + c, counts ? slope : all(0));
                }
                sums += logarithm(whole) + largest - chosen;
            } else if (loss.kind == LEAST_SQUARES) {
                for (long c = 0; c < loss.choices; c++) {
                    const Vector s = at.get(place.scores, row, place.first + c), d = target == (float)c ? s - 1.f : s;
                    sums += d * d;
                    at.put(place.grad, row, place.first + c, 2.f * scale * d);
                }
            } else {
                Vector largest = all(-INFINITY), drawn = all(0), whole = all(0), mean = all(0);
                for (long c = 0; c < loss.choices; c++) {
                    x[c] = at.get(place.scores, row, place.first + c) + noise.gumbel(first + row, t, c, loss.choices);
                    drawn = x[c] > largest ? all((float)c) : drawn;
                    largest = larger(x[c], largest);
                }
                for (long c = 0; c < loss.choices; c++) whole += p[c] = exponential((x[c] - largest) * rate);
                for (long c = 0; c < loss.choices; c++) {
                    const Vector d = (drawn == (float)c ? all(1) : all(0)) - (target == (float)c ? all(1) : all(0));
                    sums += d * d + (x[c] - x[c]);  // NaN if the scores are NaN
                    p[c] = p[c] / whole;
                    x[c] = 2.f * scale * d;
                    mean += p[c] * x[c];
                }
                for (long c = 0; c < loss.choices; c++) {
                    const Vector slope = p[c] * (x[c] - mean) * rate;
                    at.put(place.grad, row, place.first + c, counts ? slope : all(0));
                }
            }
            if (loss.end >= 0) {
                sums = counts ? sums : before;
                counts = counts & (target != (float)loss.end);
            }
        }
        total += sum(first_lanes(sums, live));
    }
    return total * loss.scale;
}

// Draw each place of some rows; count in `rewards` the draws that equal the target. -1 is a place that does not count.
inline void draw_rows(const Loss& loss, const Place* places, long rows, long distance, const int64_t* targets,
                      const Noise& noise, long first, int32_t* drawn, float* rewards) {
    const Columns at{rows, distance};
    for (long row = 0; row < rows; row += LANES) {
        const long live = std::min<long>(LANES, rows - row);
        for (long i = 0; i < live; i++) rewards[row + i] = 0;
        for (long t = 0; t < loss.places; t++) {
            Vector largest = all(-INFINITY), best = all(0);
            for (long c = 0; c < loss.choices; c++) {
                const Vector x = at.get(places[t].scores, row, places[t].first + c) +
                                 noise.gumbel(first + row, t, c, loss.choices);
                best = x > largest ? all((float)c) : best;
                largest = larger(x, largest);
            }
            for (long i = 0; i < live; i++) {
                const long here = (row + i) * loss.places + t;
                const bool after = loss.end >= 0 && t > 0 && (drawn[here - 1] < 0 || targets[here - 1] == loss.end);
                drawn[here] = after ? -1 : (int32_t)best[i];
                rewards[row + i] += !after && (int64_t)best[i] == targets[here];
            }
        }
    }
}

// Convert rewards to advantages over the whole batch.
inline void centre(float* rewards, long batch) {
    double mean = 0, squares = 0;
    for (long i = 0; i < batch; i++) mean += rewards[i];
    mean /= batch;
    for (long i = 0; i < batch; i++) squares += (rewards[i] - mean) * (rewards[i] - mean);
    const double deviation = batch > 1 ? std::sqrt(squares / (batch - 1)) : NAN;
    for (long i = 0; i < batch; i++)
        rewards[i] = (float)((rewards[i] - mean) / (deviation > SMALLEST_DEVIATION ? deviation : 1.));
}

// The REINFORCE loss of some rows, from the draws and their advantages; writes its gradient.
inline double reinforce_rows(const Loss& loss, const Place* places, long rows, long distance, const int32_t* drawn,
                             const float* advantages) {
    const Columns at{rows, distance};
    Vector p[MOST_CHOICES], s[MOST_CHOICES];
    const float reward = (float)loss.reward, weight = (float)loss.entropy;
    double total = 0;
    for (long row = 0; row < rows; row += LANES) {
        const int live = (int)std::min<long>(LANES, rows - row);
        Vector sums = all(0), advantage;
        for (long i = 0; i < LANES; i++) advantage[i] = advantages[std::min(row + i, rows - 1)];
        for (long t = 0; t < loss.places; t++) {
            Vector choice;
            for (long i = 0; i < LANES; i++)
                choice[i] = (float)drawn[std::min(row + i, rows - 1) * loss.places + t];
            const Vector whole = probabilities(at, places[t].scores, row, places[t].first, loss.choices, p);
            const auto counts = choice >= 0.f;
            const Vector before = sums;
            Vector chosen = all(0), mean = all(0);
            for (long c = 0; c < loss.choices; c++) {
                chosen = choice == (float)c ? at.get(places[t].scores, row, places[t].first + c) : chosen;
                const Vector l = logarithm(p[c] + INSIDE_LOG);
                sums += weight * p[c] * l;
                s[c] = weight * (l + p[c] / (p[c] + INSIDE_LOG));  // gradient of minus the entropy with respect to the probability
                mean += p[c] * s[c];
            }
            sums += reward * advantage * (whole - chosen);
            sums = counts ? sums : before;
            for (long c = 0; c < loss.choices; c++) {
                const Vector of_reward = reward * advantage * (choice == (float)c ? p[c] - 1.f : p[c]);
                const Vector slope = of_reward + p[c] * (s[c] - mean);
                at.put(places[t].grad, row, places[t].first + c, counts ? slope : all(0));
            }
        }
        total += sum(first_lanes(sums, live));
    }
    return total;
}

}  // namespace ICY_NAMESPACE
