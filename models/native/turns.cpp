// Draws the objects of turns of a multi-target game (icy.games.rules and icy.games.turns do the same in PyTorch).

#include "noise.h"

namespace ICY_NAMESPACE {

constexpr int64_t GROUP = 0, LOOK = 1, VALUES = 2;  // streams of random numbers of an object

struct TurnDraws {
    int64_t turns, objects, attributes, stream;
    int64_t borders;           // number of cumulative shares of a grouping
    const int64_t *keys;       // [turn]
    const int64_t *rules;      // [turn]: number of its rule
    const int64_t *table;      // [rule][attribute]: the demanded value, or -1
    const int64_t *groupings;  // [turn]: grouping of its rule
    const double* shares;      // [grouping][borders]
    const int64_t* sizes;      // [attribute]: number of values
    int64_t *values, *looks;   // [turn][object][attribute], [turn][object]
};

// Number in [0, 1) with 53 bits.
static double unit(uint64_t bits) { return (double)(bits >> 11) * 0x1p-53; }

// A value of each attribute for an object of a group: bit k of the group is 1 if it lacks the rule's k-th concept.
static void draw_object(const TurnDraws& d, uint64_t key, const int64_t* demanded, int64_t group, int64_t* values) {
    for (int64_t a = 0; a < d.attributes; a++) {
        const bool fixed = demanded[a] >= 0, lacking = fixed && group & 1;
        if (fixed) group >>= 1;
        int64_t value = (int64_t)(unit(counter_hash(key, VALUES + a)) * (double)(d.sizes[a] - lacking));
        value += lacking && value >= demanded[a];  // any value except the demanded value
        values[a] = fixed && !lacking ? demanded[a] : value;
    }
}

}  // namespace ICY_NAMESPACE

using namespace ICY_NAMESPACE;

// Draw the objects of one kind for some turns.
ICY_EXPORT(void, icy_turns)(const TurnDraws* draws) {
    const TurnDraws& d = *draws;
    for (int64_t turn = 0; turn < d.turns; turn++) {
        const uint64_t of_turn = counter_hash((uint64_t)d.keys[turn], (uint64_t)d.stream);
        const int64_t* demanded = d.table + d.rules[turn] * d.attributes;
        const double* shares = d.shares + d.groupings[turn] * d.borders;
        for (int64_t i = 0; i < d.objects; i++) {
            const int64_t place = turn * d.objects + i;
            const uint64_t key = counter_hash(of_turn, (uint64_t)i);
            const double uniform = unit(counter_hash(key, GROUP));
            int64_t group = 0;
            for (int64_t k = 0; k < d.borders; k++) group += uniform >= shares[k];
            draw_object(d, key, demanded, group, d.values + place * d.attributes);
            d.looks[place] = (int64_t)counter_hash(key, LOOK);
        }
    }
}
