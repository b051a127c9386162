// Updates of the agents of a multi-target game (icy.games.model has the equations): perception of the shown objects, the
// talk of sender and receiver, perception of the candidates and their scores. Each of the first three is a program.
//
// Included by program.cpp, after the code that runs programs.
#pragma once

#include "parts.h"

namespace ICY_NAMESPACE {

// Call a function with the number of the first row, for each chunk of a part's rows. A part that keeps its chunks has a
// tape for each.
template <class F>
static void each_chunk(Part& part, long rows, bool kept, F function) {
    for (long first = 0; first < rows; first += part.program->chunk) {
        part.select(first, std::min<long>(part.program->chunk, rows - first), kept ? first / part.program->chunk : 0);
        function(first);
    }
}

// to[j] += factor * from[j], for a row of a panel and contiguous numbers.
inline void add_row(const float* panel, long distance, long columns, float factor, float* to) {
    for (long c = 0; c < columns; c += BLOCK)
        for (long j = 0; j < std::min<long>(BLOCK, columns - c); j++)
            to[c + j] += factor * panel[c / BLOCK * distance + j];
}

inline void set_row(const float* from, long distance, long columns, float factor, float* panel) {
    for (long c = 0; c < columns; c += BLOCK)
        for (long j = 0; j < std::min<long>(BLOCK, columns - c); j++)
            panel[c / BLOCK * distance + j] = factor * from[c + j];
}

struct GameUpdates {
    const Training& game;
    const long seen, judged;        // objects of a batch
    const long of_one, columns;     // numbers of an embedding of the sender, and of the receiver
    const long described, wanted;   // numbers of a turn's description, and of the receiver's vector, in whole blocks
    Part see, talk, judge;
    float *descriptions, *to_descriptions, *wants, *to_wants, *scores;

    GameUpdates(const Training& game, float* parameters, float* gradients, Workspace& space)
        : game(game), seen(game.batch * game.shown), judged(game.batch * game.candidates), of_one(game.program->choices),
          columns(game.talk->choices), described((game.shown > game.targets ? 2 : 1) * of_one),
          wanted(blocks(columns) * BLOCK), see(Part::take(*game.program, space, parameters, gradients, seen)),
          talk(Part::take(*game.talk, space, parameters, gradients, game.batch)),
          judge(Part::take(*game.judge, space, parameters, gradients, 1)) {
        descriptions = space.take<float>(game.batch * described);
        to_descriptions = space.take<float>(game.batch * described);
        wants = space.take<float>(game.batch * wanted);
        to_wants = space.take<float>(game.batch * wanted);
        scores = space.take<float>(game.judge->chunk + LANES);
    }

    // The place of an object in the descriptions, and its weight in the mean.
    long part_of(long row) const {
        return row / game.shown * described + (row % game.shown < game.targets ? 0 : of_one);
    }
    float share_of(long row) const {
        return 1.f / (row % game.shown < game.targets ? game.targets : game.shown - game.targets);
    }

    void describe(const int64_t* objects) {
        std::memset(descriptions, 0, sizeof(float) * game.batch * described);
        each_chunk(see, seen, true, [&](long first) {
            see.memory.tokens = objects + first * see.program->tokens;
            see.forward();
            for (long i = 0; i < see.memory.rows; i++)
                add_row(see.places->scores + i * BLOCK, see.distance(), of_one, share_of(first + i),
                        descriptions + part_of(first + i));
        });
    }

    void speak() {
        std::memset(wants, 0, sizeof(float) * game.batch * wanted);
        each_chunk(talk, game.batch, true, [&](long first) {
            talk.memory.input = descriptions + first * described;
            talk.forward();
            for (long i = 0; i < talk.memory.rows; i++)
                add_row(talk.places->scores + i * BLOCK, talk.distance(), columns, 1.f, wants + (first + i) * wanted);
        });
    }

    // Scores of `rows` candidates, from the product of two vectors, to the gradient of the loss. Returns the loss.
    double lose(long first, long rows) {
        const float scale = 1.f / (game.batch * game.candidates);
        double loss = 0;
        for (long i = 0; i < rows; i += LANES) {
            Vector label;
            for (long j = 0; j < LANES; j++) label[j] = (first + i + j) % game.candidates < game.targets ? 1.f : 0.f;
            const Vector x = load(scores + i), size = larger(x, -x), away = label > 0.5f ? -x : x;
            const Vector errors = larger(all(0), away) + logarithm(1.f + exponential(-size));
            loss += sum(first_lanes(errors, (int)std::min<long>(LANES, rows - i)));
            store(scores + i, (sigmoid(x) - label) * scale);
        }
        return loss * scale;
    }

    double choose(const int64_t* objects) {
        double loss = 0;
        std::memset(to_wants, 0, sizeof(float) * game.batch * wanted);
        each_chunk(judge, judged, false, [&](long first) {
            const long rows = judge.memory.rows, distance = judge.distance();
            const RowVectors vectors{columns, distance};
            judge.memory.tokens = objects + first * judge.program->tokens;
            judge.forward();
            for (long i = 0; i < rows; i++) {
                const float* want = wants + (first + i) / game.candidates * wanted;
                Vector total = all(0);
                vectors.each(i, [&](long o, long c) {
                    total += vectors.exact(load(judge.places->scores + o), c) * load(want + c);
                });
                scores[i] = sum(total);
            }
            loss += lose(first, rows);
            for (long i = 0; i < rows; i++) {
                const long turn = (first + i) / game.candidates;
                add_row(judge.places->scores + i * BLOCK, distance, columns, scores[i], to_wants + turn * wanted);
                set_row(wants + turn * wanted, distance, columns, scores[i], judge.places->grad + i * BLOCK);
            }
            judge.backward();
        });
        return loss;
    }

    void learn(const int64_t* objects) {
        std::memset(to_descriptions, 0, sizeof(float) * game.batch * described);
        each_chunk(talk, game.batch, true, [&](long first) {
            talk.memory.input = descriptions + first * described;
            talk.memory.to_input = to_descriptions + first * described;
            for (long i = 0; i < talk.memory.rows; i++)
                set_row(to_wants + (first + i) * wanted, talk.distance(), columns, 1.f,
                        talk.places->grad + i * BLOCK);
            talk.backward();
        });
        each_chunk(see, seen, true, [&](long first) {
            see.memory.tokens = objects + first * see.program->tokens;
            for (long i = 0; i < see.memory.rows; i++)
                set_row(to_descriptions + part_of(first + i), see.distance(), of_one, share_of(first + i),
                        see.places->grad + i * BLOCK);
            see.backward();
        });
    }

    // Compute the gradients of an update, and return the loss.
    double update(long replicate, int64_t number) {
        const int64_t place = number * game.replicates + replicate;
        const int64_t *shown = game.inputs + place * seen * see.program->tokens,
                      *candidates = game.answers + place * judged * judge.program->tokens;
        double extra = 0;
        talk.memory.extra = &extra;
        for (Part* part : {&see, &talk, &judge}) part->begin({(uint64_t)game.keys[place], (long)game.batch});
        describe(shown);
        speak();
        const double loss = choose(candidates);
        learn(shown);
        for (Part* part : {&see, &talk, &judge}) part->end();
        return loss + extra;
    }
};

}  // namespace ICY_NAMESPACE
