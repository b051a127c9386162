// Updates of the agents of a multi-target game (icy.games.model has the equations): perception of the shown objects, the
// talk of sender and receiver, perception of the candidates and their scores. Each of the first three is a program.
//
// Included by program.cpp, after the code that runs programs.
#pragma once

namespace ICY_NAMESPACE {

struct Game {
    const Program *see, *talk, *judge;
    Optimizer optimizer;
    int64_t replicates, updates, batch, padded;      // the last: numbers from one replicate to the next
    int64_t targets, candidates, shown;              // per turn; the sender sees `shown` objects, targets first
    int64_t described, wanted;                       // columns of an embedding of the sender, and of the receiver
    float *parameters, *first_moments, *second_moments;  // [replicate][padded]
    const float* trained;                            // [padded]: 1, or 0 for frozen parameters; may be null
    const int64_t *seen, *judged, *keys;             // [update][replicate], then [turn][object][attribute]
    double* losses;                                  // [replicate]
};

// A program of a replicate, with its memory: one tape for each chunk of `batch` rows, or a single tape.
struct GamePart {
    const Program& program;
    const long batch;
    const bool kept;
    Memory memory;
    float* tapes;
    Place place;

    GamePart(const Program& program, long batch, bool kept, Workspace& space)
        : program(program), batch(batch), kept(kept) {
        memory.base[0] = space.take<float>(program.weights);
        tapes = space.take<float>(program.tape * (kept ? (batch + program.chunk - 1) / program.chunk : 1));
        memory.base[4] = const_cast<float*>(program.constants);
    }

    long distance() const { return program.chunk * BLOCK; }

    void begin(float* parameters, float* gradients) {
        memory.base[2] = parameters;
        memory.base[3] = gradients;
        std::memset(memory.base[0] + program.first_gradient, 0,
                    sizeof(float) * (program.last_gradient - program.first_gradient));
        run(program, program.before, memory);
    }

    // Call a function for each chunk of the batch, with the number of its first row.
    template <class F>
    void each_chunk(F function) {
        for (long first = 0; first < batch; first += program.chunk) {
            memory.first = first;
            memory.rows = std::min<long>(program.chunk, batch - first);
            memory.base[1] = tapes + (kept ? first / program.chunk * program.tape : 0);
            find_places(program, memory, &place);
            function(first);
        }
    }

    void forward() { run(program, program.forward, memory); }
    void backward() { run(program, program.backward, memory); }
    void end() { run(program, program.after, memory); }
};

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

struct GameMemory {
    const Game& game;
    GamePart see, talk, judge;
    const long parts, described, wanted;  // numbers of a turn's description, and of the receiver's vector, in whole blocks
    float *gradients, *descriptions, *to_descriptions, *wants, *to_wants, *scores;

    GameMemory(const Game& game, Workspace& space)
        : game(game), see(*game.see, game.batch * game.shown, true, space), talk(*game.talk, game.batch, true, space),
          judge(*game.judge, game.batch * game.candidates, false, space), parts(game.shown > game.targets ? 2 : 1),
          described(parts * game.described), wanted(blocks(game.wanted) * BLOCK) {
        gradients = space.take<float>(game.padded);
        descriptions = space.take<float>(game.batch * described);
        to_descriptions = space.take<float>(game.batch * described);
        wants = space.take<float>(game.batch * wanted);
        to_wants = space.take<float>(game.batch * wanted);
        scores = space.take<float>(game.judge->chunk + LANES);
    }

    // The place of an object in the descriptions, and its weight in the mean.
    long part_of(long row) const {
        return row / game.shown * described + (row % game.shown < game.targets ? 0 : game.described);
    }
    float share_of(long row) const {
        return 1.f / (row % game.shown < game.targets ? game.targets : game.shown - game.targets);
    }

    void describe(const int64_t* seen) {
        std::memset(descriptions, 0, sizeof(float) * game.batch * described);
        see.each_chunk([&](long first) {
            see.memory.tokens = seen + first * see.program.tokens;
            see.forward();
            for (long i = 0; i < see.memory.rows; i++)
                add_row(see.place.scores + i * BLOCK, see.distance(), game.described, share_of(first + i),
                        descriptions + part_of(first + i));
        });
    }

    void speak() {
        std::memset(wants, 0, sizeof(float) * game.batch * wanted);
        talk.each_chunk([&](long first) {
            talk.memory.input = descriptions + first * described;
            talk.forward();
            for (long i = 0; i < talk.memory.rows; i++)
                add_row(talk.place.scores + i * BLOCK, talk.distance(), game.wanted, 1.f, wants + (first + i) * wanted);
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

    double choose(const int64_t* judged) {
        double loss = 0;
        std::memset(to_wants, 0, sizeof(float) * game.batch * wanted);
        judge.each_chunk([&](long first) {
            const long rows = judge.memory.rows, distance = judge.distance();
            const RowVectors vectors{game.wanted, distance};
            judge.memory.tokens = judged + first * judge.program.tokens;
            judge.forward();
            for (long i = 0; i < rows; i++) {
                const float* want = wants + (first + i) / game.candidates * wanted;
                Vector total = all(0);
                vectors.each(i, [&](long o, long c) {
                    total += vectors.exact(load(judge.place.scores + o), c) * load(want + c);
                });
                scores[i] = sum(total);
            }
            loss += lose(first, rows);
            for (long i = 0; i < rows; i++) {
                const long turn = (first + i) / game.candidates;
                add_row(judge.place.scores + i * BLOCK, distance, game.wanted, scores[i], to_wants + turn * wanted);
                set_row(wants + turn * wanted, distance, game.wanted, scores[i], judge.place.grad + i * BLOCK);
            }
            judge.backward();
        });
        return loss;
    }

    void learn(const int64_t* seen) {
        std::memset(to_descriptions, 0, sizeof(float) * game.batch * described);
        talk.each_chunk([&](long first) {
            talk.memory.input = descriptions + first * described;
            talk.memory.to_input = to_descriptions + first * described;
            for (long i = 0; i < talk.memory.rows; i++)
                set_row(to_wants + (first + i) * wanted, talk.distance(), game.wanted, 1.f,
                        talk.place.grad + i * BLOCK);
            talk.backward();
        });
        see.each_chunk([&](long first) {
            see.memory.tokens = seen + first * see.program.tokens;
            for (long i = 0; i < see.memory.rows; i++)
                set_row(to_descriptions + part_of(first + i), see.distance(), game.described, share_of(first + i),
                        see.place.grad + i * BLOCK);
            see.backward();
        });
    }

    // Compute the gradients of an update, and return the loss.
    double update(float* parameters, const int64_t* seen, const int64_t* judged, int64_t key) {
        std::memset(gradients, 0, sizeof(float) * game.padded);
        for (GamePart* part : {&see, &talk, &judge}) part->begin(parameters, gradients);
        talk.memory.noise = {(uint64_t)key, game.batch};
        describe(seen);
        speak();
        const double loss = choose(judged);
        learn(seen);
        for (GamePart* part : {&see, &talk, &judge}) part->end();
        return loss;
    }
};

static void play_one(const Game& game, long replicate, Workspace space) {
    GameMemory memory(game, space);
    const long seen = game.batch * game.shown * game.see->tokens, judged = game.batch * game.candidates * game.judge->tokens;
    float* parameters = game.parameters + replicate * game.padded;
    for (int64_t u = 0; u < game.updates; u++) {
        const int64_t place = u * game.replicates + replicate;
        game.losses[replicate] =
            memory.update(parameters, game.seen + place * seen, game.judged + place * judged, game.keys[place]);
        if (game.trained)
            for (long i = 0; i < game.padded; i++) memory.gradients[i] *= game.trained[i];
        descend(game.optimizer, game.optimizer.step + u + 1, game.padded, parameters, memory.gradients,
                game.first_moments + replicate * game.padded, game.second_moments + replicate * game.padded);
    }
}

}  // namespace ICY_NAMESPACE
