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
constexpr float ABSENT = -5e3f;  // icy.core.representations.losses has the same
constexpr double SMALLEST_DEVIATION = 0.1;

// Call a function with each place, and the vectors of its scores for LANES rows. If `write`, the function leaves their
// gradient there. Places next to each other in a panel are read and written together.
template <bool WRITE, class F>
ICY_INLINE void each_place(const Columns& at, const Place* places, long count, long choices, long row, F function) {
    constexpr long AT_ONCE = 256;  // columns that stay in the nearest cache
    Vector buffer[Columns::MOST];
    for (long t = 0, next; t < count; t = next) {
        const Place& place = places[t];
        const auto beside = [&](long other) {
            const long distance = (other - t) * choices;
            return places[other].scores == place.scores && places[other].grad == place.grad &&
                   places[other].first == place.first + distance && distance + choices <= AT_ONCE;
        };
        for (next = t + 1; next < count && beside(next);) next++;
        const long columns = (next - t) * choices;
        Vector* x = at.read(place.scores, row, place.first, columns, buffer);
        for (long one = t; one < next; one++, x += choices) function(one, x);
        if (WRITE) at.write(place.grad, row, place.first, columns, buffer);
    }
}

// Numbers of a place for LANES rows, as a vector; rows past the last repeat it.
template <class T>
ICY_INLINE Vector column_of(const T* numbers, long count, long place, long row, long rows) {
    float found[LANES];
    for (long i = 0; i < LANES; i++) found[i] = (float)numbers[std::min(row + i, rows - 1) * count + place];
    return load(found);
}

// Each function below replaces the scores x of a place by their gradient, and returns the loss without its factor.

// The value of the loss is optional, since only the last update needs it.
template <bool VALUE>
ICY_INLINE Vector cross_entropy(Vector target, Vector* x, long choices, float scale) {
    Vector largest = all(-INFINITY), chosen = all(0), whole = all(0);
    for (long c = 0; c < choices; c++) {
        if (VALUE) chosen = target == (float)c ? x[c] : chosen;
        largest = larger(x[c], largest);
    }
    for (long c = 0; c < choices; c++) whole += x[c] = moderate_exponential(larger(-87.f, x[c] - largest));
    const Vector inverse = scale / whole;
    for (long c = 0; c < choices; c++) {
        const Vector share = x[c] * inverse;
        x[c] = target == (float)c ? share - scale : share;
    }
    return VALUE ? logarithm(whole) + largest - chosen : all(0);
}

// Raw scores below ABSENT are of values that an attribute does not have, and have no error.
ICY_INLINE Vector least_squares(Vector target, Vector* x, long choices, float scale) {
    Vector total = all(0);
    for (long c = 0; c < choices; c++) {
        const Vector error = target == (float)c ? x[c] - 1.f : x[c], d = x[c] < ABSENT ? all(0) : error;
        total += d * d;
        x[c] = 2.f * scale * d;
    }
    return total;
}

ICY_INLINE Vector straight_through(Vector target, Vector* x, Vector* p, long choices, float scale, float rate,
                                   const Noise& noise, long example, long place) {
    Vector largest = all(-INFINITY), drawn = all(0), whole = all(0), mean = all(0), total = all(0);
    for (long c = 0; c < choices; c++) {
        x[c] += noise.gumbel(example, place, c, choices);
        drawn = x[c] > largest ? all((float)c) : drawn;
        largest = larger(x[c], largest);
    }
    for (long c = 0; c < choices; c++) whole += p[c] = exponential((x[c] - largest) * rate);
    for (long c = 0; c < choices; c++) {
        const Vector d = (drawn == (float)c ? all(1) : all(0)) - (target == (float)c ? all(1) : all(0));
        total += d * d + (x[c] - x[c]);  // NaN if the scores are NaN
        p[c] = p[c] / whole;
        x[c] = 2.f * scale * d;
        mean += p[c] * x[c];
    }
    for (long c = 0; c < choices; c++) x[c] = p[c] * (x[c] - mean) * rate;
    return total;
}

template <class F>
ICY_INLINE double loss_of_places(const Loss& loss, const Place* places, long rows, long distance,
                                 const int64_t* targets, F function) {
    const Columns at{rows, distance};
    double total = 0;
    for (long row = 0; row < rows; row += LANES) {
        Vector sums = all(0);
        auto counts = sums == sums;
        each_place<true>(at, places, loss.places, loss.choices, row, [&](long t, Vector* x) __attribute__((always_inline)) {
            const Vector target = column_of(targets, loss.places, t, row, rows), own = function(row, t, target, x);
            if (loss.end < 0) {
                sums += own;
                return;
            }
            sums = counts ? sums + own : sums;
            for (long c = 0; c < loss.choices; c++) x[c] = counts ? x[c] : all(0);
            counts = counts & (target != (float)loss.end);
        });
        total += sum(first_lanes(sums, (int)std::min<long>(LANES, rows - row)));
    }
    return total * loss.scale;
}

// The loss of some rows, from example `first`; writes its gradient. Not for REINFORCE. Without `value`, the result is only
// the gradient.
inline double loss_of_rows(const Loss& loss, const Place* places, long rows, long distance, const int64_t* targets,
                           const Noise& noise, long first, bool value) {
    const float scale = (float)loss.scale, rate = 1.f / (float)loss.temperature;
    const long choices = loss.choices;
    const auto of_places = [&](auto function) __attribute__((always_inline)) {
        return loss_of_places(loss, places, rows, distance, targets, function);
    };
    if (loss.kind == CROSS_ENTROPY && value)
        return of_places([&](long, long, Vector target, Vector* x) { return cross_entropy<true>(target, x, choices, scale); });
    if (loss.kind == CROSS_ENTROPY)
        return of_places([&](long, long, Vector target, Vector* x) { return cross_entropy<false>(target, x, choices, scale); });
    if (loss.kind == LEAST_SQUARES)
        return of_places([&](long, long, Vector target, Vector* x) { return least_squares(target, x, choices, scale); });
    Vector p[MOST_CHOICES];
    return of_places([&](long row, long t, Vector target, Vector* x) {
        return straight_through(target, x, p, choices, scale, rate, noise, first + row, t);
    });
}

// Rewards or advantages: one number per row, or per row and place.
struct Rewards {
    float* first;
    long by_row, by_place;

    float& at(long row, long place) const { return first[row * by_row + place * by_place]; }

    // Numbers of a place for LANES rows, as a vector; rows past the last repeat it.
    ICY_INLINE_MEMBER Vector of(long row, long place, long rows) const {
        float found[LANES];
        for (long i = 0; i < LANES; i++) found[i] = at(std::min(row + i, rows - 1), place);
        return load(found);
    }
};

// Draw each place of some rows; count in `rewards` the draws that equal the target. -1 is a place that does not count.
inline void draw_rows(const Loss& loss, const Place* places, long rows, long distance, const int64_t* targets,
                      const Noise& noise, long first, int32_t* drawn, const Rewards& rewards) {
    const Columns at{rows, distance};
    for (long row = 0; row < rows; row += LANES) {
        const long live = std::min<long>(LANES, rows - row);
        for (long i = 0; i < live; i++)
            for (long t = 0; t < loss.places; t++) rewards.at(row + i, t) = 0;
        each_place<false>(at, places, loss.places, loss.choices, row, [&](long t, const Vector* scores) {
            Vector largest = all(-INFINITY), best = all(0);
            for (long c = 0; c < loss.choices; c++) {
                const Vector x = scores[c] + noise.gumbel(first + row, t, c, loss.choices);
                best = x > largest ? all((float)c) : best;
                largest = larger(x, largest);
            }
            for (long i = 0; i < live; i++) {
                const long here = (row + i) * loss.places + t;
                const bool after = loss.end >= 0 && t > 0 && (drawn[here - 1] < 0 || targets[here - 1] == loss.end);
                drawn[here] = after ? -1 : (int32_t)best[i];
                rewards.at(row + i, t) += !after && (int64_t)best[i] == targets[here];
            }
        });
    }
}

// Convert rewards of a whole batch to advantages.
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
                             const Rewards& advantages) {
    const Columns at{rows, distance};
    Vector p[MOST_CHOICES], s[MOST_CHOICES];
    const float reward = (float)loss.reward, weight = (float)loss.entropy;
    double total = 0;
    for (long row = 0; row < rows; row += LANES) {
        Vector sums = all(0);
        each_place<true>(at, places, loss.places, loss.choices, row, [&](long t, Vector* x) {
            const Vector choice = column_of(drawn, loss.places, t, row, rows), advantage = advantages.of(row, t, rows);
            for (long c = 0; c < loss.choices; c++) p[c] = x[c];
            const Vector whole = probabilities(p, loss.choices);
            const auto counts = choice >= 0.f;
            const Vector before = sums;
            Vector chosen = all(0), mean = all(0);
            for (long c = 0; c < loss.choices; c++) {
                chosen = choice == (float)c ? x[c] : chosen;
                const Vector l = logarithm(p[c] + INSIDE_LOG);
                sums += weight * p[c] * l;
                s[c] = weight * (l + p[c] / (p[c] + INSIDE_LOG));  // gradient of minus the entropy with respect to the probability
                mean += p[c] * s[c];
            }
            sums += reward * advantage * (whole - chosen);
            sums = counts ? sums : before;
            for (long c = 0; c < loss.choices; c++) {
                const Vector of_reward = reward * advantage * (choice == (float)c ? p[c] - 1.f : p[c]);
                x[c] = counts ? of_reward + p[c] * (s[c] - mean) : all(0);
            }
        });
        total += sum(first_lanes(sums, (int)std::min<long>(LANES, rows - row)));
    }
    return total;
}

}  // namespace ICY_NAMESPACE
