// A program as one part of a larger program: the caller passes each chunk through the forward phases of several parts, and
// back.
#pragma once

namespace ICY_NAMESPACE {

struct Part {
    const Program* program;
    Memory memory;
    Place* places;
    float* tapes;  // one per chunk that is kept

    // Take the memory of a part. `parameters` and `gradients` start at the numbers of this part.
    static Part take(const Program& program, Workspace& space, float* parameters, float* gradients, long chunks) {
        Part part{&program, {}, space.take<Place>(program.place_count), space.take<float>(program.tape * chunks)};
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

}  // namespace ICY_NAMESPACE
