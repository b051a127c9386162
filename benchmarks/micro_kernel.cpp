// The bound in speed.py: how fast one core multiplies the matrices of a recurrent step (64 states of size 128 times the
// weights of three gates) without any other work: with the micro-kernel of the native cores, and with operands packed and
// in the cache.

#include <algorithm>
#include <chrono>
#include <cmath>

#include "products.h"

using namespace ICY_NAMESPACE;

constexpr long ROWS = 64, INNER = 128, COLUMNS = 384;
alignas(4096) static float x[ROWS * INNER];
alignas(4096) static float weights[INNER * COLUMNS];
alignas(4096) static float y[ROWS * COLUMNS];

// Sizes that the compiler does not know, as in the cores.
static volatile long rows = ROWS, inner = INNER, columns = COLUMNS;

static void multiply_once() {
    const Factor factor{x, weights, inner};
    product(&factor, 1, rows, rows * BLOCK, columns, y, nullptr, false);
}

static void fill() {
    std::fill(x, x + ROWS * INNER, .01f);
    std::fill(weights, weights + INNER * COLUMNS, .02f);
    std::fill(y, y + ROWS * COLUMNS, 0.f);
}

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Return this thread's billions of operations per second (a multiplication and an addition are two), over some time.
extern "C" double micro_kernel_rate(double seconds) {
    fill();
    const double began = now();
    long done = 0;
    do {
        for (int i = 0; i < 32; i++) multiply_once();
        done += 32;
    } while (now() - began < seconds);
    return 2e-9 * ROWS * INNER * COLUMNS * done / (now() - began);
}

// Return the largest error of the product at any place; for a test.
extern "C" double micro_kernel_error() {
    fill();
    multiply_once();
    double worst = 0;
    for (float found : y) worst = std::max(worst, std::abs(found - INNER * .01 * .02));
    return worst;
}
