// The recurrent part of an LSTM over several steps, whose states may be reset to zero before any step.
//
// The caller multiplies the inputs by their weights, for all steps at once. Tensors of the caller hold rows,
// [step][row][column]; within a step, this file works on panels (products.h). All numbers of columns are multiples of 32.

#include "cells.h"
#include "products.h"

namespace ICY_NAMESPACE {

inline void to_panel(const float* from, long rows, long columns, float* panel, bool add) {
    for (long block = 0; block < columns / BLOCK; block++)
        for (long row = 0; row < rows; row++)
            for (int j = 0; j < BLOCK; j += LANES) {
                const Vector x = load(from + row * columns + block * BLOCK + j);
                float* to = panel + (block * rows + row) * BLOCK + j;
                store(to, add ? load(to) + x : x);
            }
}

inline void to_rows(const float* panel, long rows, long columns, float* to) {
    for (long row = 0; row < rows; row++)
        for (long block = 0; block < columns / BLOCK; block++)
            std::memcpy(to + row * columns + block * BLOCK, panel + (block * rows + row) * BLOCK, sizeof(float) * BLOCK);
}

// Set the rows of a panel in a mask to zero.
inline void clear(const uint8_t* mask, long rows, long columns, float* panel) {
    for (long row = 0; row < rows; row++)
        if (mask[row])
            for (long block = 0; block < columns / BLOCK; block++)
                std::memset(panel + (block * rows + row) * BLOCK, 0, sizeof(float) * BLOCK);
}

// An LSTM of `hidden` units on `rows` rows for some steps, and what a step keeps for the backward pass.
struct Recurrence {
    int64_t steps, rows, hidden;
    const uint8_t* resets;  // [step][row]: rows to reset before a step; may be missing
    float* kept;            // panels of each step: gates, tanh of the cell, cell before; of one step without gradients
    int64_t keeps;          // whether `kept` has the panels of all steps

    long size() const { return rows * hidden; }
    Extent extent() const { return {rows, hidden / BLOCK, rows * BLOCK}; }
    float* gates(long step) const { return kept + keeps * step * 6 * size(); }
    float* tangents(long step) const { return gates(step) + 4 * size(); }
    float* before(long step) const { return gates(step) + 5 * size(); }

    void reset(long step, float* h, float* c) const {
        if (!resets) return;
        clear(resets + step * rows, rows, hidden, h);
        clear(resets + step * rows, rows, hidden, c);
    }
};

}  // namespace ICY_NAMESPACE

using namespace ICY_NAMESPACE;

// Pack the weights of the state, [4 * hidden][hidden], for the forward pass and for the backward pass.
ICY_EXPORT(void, icy_lstm_pack)(float* weight, int64_t hidden, float* forward, float* backward) {
    pack({weight, 1, hidden, 0, false}, hidden, 4 * hidden, forward);
    pack({weight, hidden, 1, 0, false}, 4 * hidden, hidden, backward);
}

// inputs: gates from the inputs, [step][row][4 * hidden]; h, c: states as panels after a copy, [row][hidden], overwritten;
// outputs, earlier: h after and before each step (`earlier` may be missing); scratch: two panels.
ICY_EXPORT(void, icy_lstm)(const Recurrence* r, const float* inputs, const float* packed, float* h_rows, float* c_rows,
                           float* outputs, float* earlier, float* scratch) {
    const long size = r->size();
    float *h = scratch, *c = scratch + size;
    to_panel(h_rows, r->rows, r->hidden, h, false);
    to_panel(c_rows, r->rows, r->hidden, c, false);
    for (long step = 0; step < r->steps; step++) {
        float* gates = r->gates(step);
        r->reset(step, h, c);
        if (earlier) to_rows(h, r->rows, r->hidden, earlier + step * size);
        std::memcpy(r->before(step), c, sizeof(float) * size);
        to_panel(inputs + step * 4 * size, r->rows, 4 * r->hidden, gates, false);
        const Factor factor{h, packed, (long)r->hidden};
        product(&factor, 1, r->rows, r->rows * BLOCK, 4 * r->hidden, gates, nullptr, true);
        float* each[4] = {gates, gates + size, gates + 2 * size, gates + 3 * size};
        lstm(r->extent(), each, r->before(step), c, r->tangents(step), h);
        to_rows(h, r->rows, r->hidden, outputs + step * size);
    }
    to_rows(h, r->rows, r->hidden, h_rows);
    to_rows(c, r->rows, r->hidden, c_rows);
}

// outputs: gradients of the outputs; h_rows, c_rows: gradients of the states after the last step, overwritten with those of
// the states before the first step; inputs: the gradients of the gates; scratch: six panels.
ICY_EXPORT(void, icy_lstm_back)(const Recurrence* r, const float* outputs, const float* packed, float* h_rows,
                                float* c_rows, float* inputs, float* scratch) {
    const long size = r->size();
    float *h = scratch, *c = scratch + size, *gates = scratch + 2 * size;
    float* each[4] = {gates, gates + size, gates + 2 * size, gates + 3 * size};
    to_panel(h_rows, r->rows, r->hidden, h, false);
    to_panel(c_rows, r->rows, r->hidden, c, false);
    for (long step = r->steps - 1; step >= 0; step--) {
        to_panel(outputs + step * size, r->rows, r->hidden, h, true);
        std::memcpy(gates, r->gates(step), sizeof(float) * 4 * size);
        lstm_back(r->extent(), h, c, r->before(step), r->tangents(step), each, c, false);
        to_rows(gates, r->rows, 4 * r->hidden, inputs + step * 4 * size);
        const Factor factor{gates, packed, 4 * (long)r->hidden};
        product(&factor, 1, r->rows, r->rows * BLOCK, r->hidden, h, nullptr, false);
        r->reset(step, h, c);
    }
    to_rows(h, r->rows, r->hidden, h_rows);
    to_rows(c, r->rows, r->hidden, c_rows);
}
