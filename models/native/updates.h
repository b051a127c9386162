// Updates of one program: of a probe, or of a pair, whose program has the link between its sides.
#pragma once

#include "parts.h"

namespace ICY_NAMESPACE {

constexpr uint64_t ANSWERS = 1;  // as in icy.core.representations.symbols

// Copy scores to rows [row][place][choice].
static void copy_scores(const Place* places, long count, long choices, long rows, long distance, float* to) {
    for (long row = 0; row < rows; row++)
        for (const Place* place = places; place < places + count; place++)
            for (long c = place->first; c < place->first + choices; c++)
                *to++ = place->scores[c / BLOCK * distance + row * BLOCK + c % BLOCK];
}

struct Updates {
    const Training& t;
    const Program& program;
    const bool whole;      // REINFORCE needs the rewards of all examples before a backward pass
    const long sent, per;  // places of a sender's scores; rewards of an example: one, or of a pair, one per answer
    Part part;
    const Drawn batch;
    int32_t *values, *tokens;  // draws of each place, for REINFORCE
    float *rewards, *gains;    // of each answer; of each example

    Updates(const Training& t, float* parameters, float* gradients, Workspace& space)
        : t(t), program(*t.program), whole(t.loss.kind == REINFORCE), sent(program.sent_count),
          per(sent ? t.loss.places : 1),
          part(Part::take(program, space, parameters, gradients, whole ? t.batch : 1)),
          batch(t.draws ? take_drawn(*t.draws, t.batch, space) : Drawn{}),
          values(space.take<int32_t>(t.batch * t.loss.places)), tokens(space.take<int32_t>(t.batch * sent)),
          rewards(space.take<float>(t.batch * per)), gains(space.take<float>(t.batch)) {}

    // Compute the gradients of an update. Returns the loss, or before the last update, which is faster, another number.
    double update(long replicate, int64_t number) {
        const int64_t place = number * t.replicates + replicate;
        const int64_t *inputs = t.inputs, *answers = t.answers;
        if (t.draws) {
            draw_some(*t.draws, replicate, number, 0, t.batch, batch);
            inputs = t.of_meanings ? batch.meanings : batch.messages;
            answers = t.of_meanings ? batch.messages : batch.meanings;
        } else {
            inputs += place * t.batch * program.tokens;
            answers += place * t.batch * t.loss.places;
        }
        const bool last = number + 1 == t.updates;
        const uint64_t key = t.keys[place];
        double loss = 0;
        part.memory.extra = &loss;
        part.begin({key, (long)t.batch});
        const Noise noise{sent ? counter_hash(key, ANSWERS) : key, (long)t.batch};
        Loss of_batch = t.loss;
        if (t.loss.end >= 0)
            of_batch.scale *= (double)(t.batch * t.loss.places) / counted_places(t.loss, answers, t.batch);
        for (long first = 0; first < t.batch; first += program.chunk) {
            const long rows = select(first);
            const int64_t* targets = answers + first * t.loss.places;
            part.memory.tokens = inputs + first * program.tokens;
            part.forward();
            if (t.right)
                t.right[replicate] += count_right(t.loss.choices, part.places, t.loss.places, rows, part.distance(),
                                                  targets, nullptr);
            if (t.sent && last)
                copy_scores(sent_places(), sent, program.sent_choices, rows, part.distance(),
                            t.sent + (replicate * t.batch + first) * sent * program.sent_choices);
            if (whole) {
                draw_rows(t.loss, part.places, rows, part.distance(), targets, noise, first,
                          values + first * t.loss.places, rewards_of(first));
                continue;
            }
            loss += loss_of_rows(of_batch, part.places, rows, part.distance(), targets, noise, first, last);
            part.backward();
        }
        if (whole) loss += reinforce(inputs);
        part.end();
        return loss;
    }

    double reinforce(const int64_t* inputs) {
        Loss of_tokens = t.loss;
        of_tokens.places = sent;
        of_tokens.choices = program.sent_choices;
        centre(rewards, t.batch * per);
        for (long i = 0; sent && i < t.batch; i++) {
            double mean = 0;
            for (long a = 0; a < per; a++) mean += rewards[i * per + a];
            gains[i] = (float)(mean / per);
        }
        double loss = 0;
        for (long first = 0; first < t.batch; first += program.chunk) {
            const long rows = select(first);
            part.memory.tokens = inputs + first * program.tokens;
            loss += reinforce_rows(t.loss, part.places, rows, part.distance(), values + first * t.loss.places,
                                   rewards_of(first));
            if (sent)
                loss += reinforce_rows(of_tokens, sent_places(), rows, part.distance(), tokens + first * sent,
                                       {gains + first, 1, 0});
            part.backward();
        }
        return loss;
    }

    // Select a chunk, and return its rows.
    long select(long first) {
        const long rows = std::min<long>(program.chunk, t.batch - first);
        part.select(first, rows, whole ? first / program.chunk : 0);
        part.memory.sent = whole && sent ? tokens + first * sent : nullptr;
        return rows;
    }

    const Place* sent_places() const { return part.places + program.place_count; }
    Rewards rewards_of(long first) const { return {rewards + first * per, per, sent ? 1 : 0}; }
};

}  // namespace ICY_NAMESPACE
