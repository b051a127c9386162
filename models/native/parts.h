// A program as one part of an update, and the loop of updates. The caller passes each chunk through the forward phases of
// its parts, and back.
#pragma once

namespace ICY_NAMESPACE {

struct Part {
    const Program* program;
    Memory memory;
    Place* places;
    float* tapes;  // one per chunk that is kept

    // Take the memory of a part, with a tape for each chunk of `kept` rows.
    static Part take(const Program& program, Workspace& space, float* parameters, float* gradients, long kept) {
        const long chunks = (kept + program.chunk - 1) / program.chunk;
        Part part{&program, {}, take_places(program, space), space.take<float>(program.tape * chunks)};
        part.memory.base[0] = space.take<float>(program.weights);
        part.memory.base[2] = parameters;
        part.memory.base[3] = gradients;
        part.memory.base[4] = const_cast<float*>(program.constants);
        return part;
    }

    // Begin an update. The caller clears the gradients of the parameters.
    void begin(const Noise& noise) {
        memory.noise = noise;
        std::memset(memory.base[0] + program->first_gradient, 0,
                    sizeof(float) * (program->last_gradient - program->first_gradient));
        run(*program, program->before, memory);
    }

    // Select `rows` examples from example `first`, and the tape with this number.
    void select(long first, long rows, long tape) {
        memory.first = first;
        memory.rows = rows;
        memory.base[1] = tapes + tape * program->tape;
        find_places(*program, memory, places);
    }

    void forward() { run(*program, program->forward, memory); }
    void backward() { run(*program, program->backward, memory); }
    void end() { run(*program, program->after, memory); }
    long distance() const { return program->chunk * BLOCK; }
};

// Update one replicate with the memory and the gradients of `Updates`; see `icy_train`.
template <class Updates>
static int64_t train_one(const Training& t, long replicate, void* workspace) {
    Workspace space(workspace);
    float *parameters = t.parameters + replicate * t.padded, *gradients = space.take<float>(t.padded);
    Updates updates(t, parameters, gradients, space);
    if (!workspace) return space.taken();
    std::memset(gradients, 0, sizeof(float) * t.padded);  // the optimizer clears them
    for (int64_t u = 0; u < t.updates; u++) {
        t.losses[replicate] = updates.update(replicate, u);
        descend(t.optimizer, t.optimizer.step + u + 1, t.padded, t.trained, parameters, gradients,
                t.first_moments + replicate * t.padded, t.second_moments + replicate * t.padded);
    }
    return space.taken();
}

}  // namespace ICY_NAMESPACE
