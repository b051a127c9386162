// The noise of an update: the same function of key and place as icy.core.noise.
#pragma once

#include "vectors.h"

namespace ICY_NAMESPACE {

inline uint64_t counter_hash(uint64_t key, uint64_t counter) {
    uint64_t x = key + counter * 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

struct Noise {
    uint64_t key;
    long batch;

    // Standard Gumbel noise of a choice at a step for LANES examples, starting at `example`.
    ICY_INLINE_MEMBER Vector gumbel(long example, long step, long choice, long choices) const {
        Vector uniform;
        const long first = (step * batch + example) * choices + choice;
        for (int i = 0; i < LANES; i++)
            uniform[i] = ((float)(int32_t)(counter_hash(key, (uint64_t)(first + i * choices)) >> 41) + 0.5f) * 0x1p-23f;
        return -logarithm(-logarithm(uniform));
    }
};

}  // namespace ICY_NAMESPACE
