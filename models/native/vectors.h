// Vectors of the widest type of a variant, and the elementary functions on them.
//
// GCC and Clang compile arithmetic on vector types for the chosen processor, so no intrinsics are needed.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "export.h"

namespace ICY_NAMESPACE {

#if defined(__AVX512F__)
constexpr int LANES = 16;
#elif defined(__AVX2__)
constexpr int LANES = 8;
#else
constexpr int LANES = 4;
#endif

typedef float Vector __attribute__((vector_size(4 * LANES)));
typedef int32_t Integers __attribute__((vector_size(4 * LANES)));

#define ICY_INLINE static inline __attribute__((always_inline))
#define ICY_INLINE_MEMBER inline __attribute__((always_inline))

// While it lives, subnormal numbers of this thread count as 0. On many processors each operation with one takes over a
// hundred cycles, so a collapsed model with such gradients would train ten times as slowly.
class NoSubnormals {
#if defined(__aarch64__)
    static constexpr uint64_t FLUSH = 1 << 24;
    typedef uint64_t Mode;
    static Mode mode() {
        Mode now;
        asm volatile("mrs %0, fpcr" : "=r"(now));
        return now;
    }
    static void set(Mode to) { asm volatile("msr fpcr, %0" ::"r"(to)); }
#else
    static constexpr unsigned FLUSH = 0x8040;  // results and operands
    typedef unsigned Mode;
    static Mode mode() { return __builtin_ia32_stmxcsr(); }
    static void set(Mode to) { __builtin_ia32_ldmxcsr(to); }
#endif
    const Mode before = mode();

public:
    NoSubnormals() { set(before | FLUSH); }
    ~NoSubnormals() { set(before); }
};

ICY_INLINE Vector load(const float* from) {
    Vector x;
    std::memcpy(&x, from, sizeof x);
    return x;
}

ICY_INLINE void store(float* to, Vector x) { std::memcpy(to, &x, sizeof x); }

// Subtracting zero does not change even -0, so the compiler may leave it out; it may not leave out adding zero.
ICY_INLINE Vector all(float x) { return x - Vector{}; }

// Sum of the lanes by halving: one after another, additions would wait for each other.
ICY_INLINE float sum(Vector x) {
    typedef float Quarter __attribute__((vector_size(16)));
    Quarter parts[LANES / 4];
    std::memcpy(parts, &x, sizeof x);
    for (int n = LANES / 8; n; n /= 2)
        for (int i = 0; i < n; i++) parts[i] += parts[i + n];
    return (parts[0][0] + parts[0][2]) + (parts[0][1] + parts[0][3]);
}

// The same number in all lanes, which the compiler does not treat as a constant. GCC 12 compares a vector with a constant and
// then blends both, instead of the one instruction for the larger or the smaller.
ICY_INLINE Vector limit(float x) {
    Vector same = all(x);
#if defined(__x86_64__)
    __asm__("" : "+v"(same));
#endif
    return same;
}

// For a and a NaN b these return b, so diverged values stay NaN behind the limits below.
ICY_INLINE Vector larger(Vector a, Vector b) { return a > b ? a : b; }
ICY_INLINE Vector smaller(Vector a, Vector b) { return a < b ? a : b; }

// The number of each lane.
ICY_INLINE Integers lanes() {
    Integers lane;
    for (int i = 0; i < LANES; i++) lane[i] = i;
    return lane;
}

// The first `count` lanes of x, and zero in the others.
ICY_INLINE Vector first_lanes(Vector x, int count) { return (Vector)((lanes() < count) & (Integers)x); }

// Lanes of two vectors: below LANES of the first, then of the second.
#if defined(__clang__) || __GNUC__ >= 12
#define ICY_LANES(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define ICY_LANES(a, b, ...) __builtin_shuffle(a, b, Integers{__VA_ARGS__})
#endif

// Swap the off-diagonal D x D blocks of each block of 2 D rows and 2 D columns.
template <int D, int... L>
ICY_INLINE void swap_blocks(Vector* v, std::integer_sequence<int, L...> lanes) {
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        if (!(i & D)) {
            const Vector a = v[i], b = v[i + D];
            v[i] = ICY_LANES(a, b, (L & D ? LANES + L - D : L)...);
            v[i + D] = ICY_LANES(a, b, (L & D ? LANES + L : L + D)...);
        }
    if constexpr (D > 1) swap_blocks<D / 2>(v, lanes);
}

// Transpose a square of LANES vectors.
ICY_INLINE void transpose(Vector* v) { swap_blocks<LANES / 2>(v, std::make_integer_sequence<int, LANES>{}); }

// Several vectors at once. An elementary function is a long chain of operations that wait for each other. A processor does
// not look ahead far enough to overlap the chains of two vectors unless their operations alternate.
struct Pack {
    static constexpr int COUNT = LANES >= 8 ? 32 / LANES : 4;
    static constexpr int WIDTH = COUNT * LANES;
    Vector v[COUNT];
};

#define ICY_EACH for (int i = 0; i < Pack::COUNT; i++)
#define ICY_OPERATOR(op)                                                                           \
    ICY_INLINE Pack operator op(Pack a, Pack b) { ICY_EACH a.v[i] = a.v[i] op b.v[i]; return a; } \
    ICY_INLINE Pack operator op(Pack a, float b) { ICY_EACH a.v[i] = a.v[i] op b; return a; }     \
    ICY_INLINE Pack operator op(float a, Pack b) { ICY_EACH b.v[i] = a op b.v[i]; return b; }
ICY_OPERATOR(+)
ICY_OPERATOR(-)
ICY_OPERATOR(*)
ICY_OPERATOR(/)
#undef ICY_OPERATOR
ICY_INLINE Pack operator-(Pack a) { ICY_EACH a.v[i] = -a.v[i]; return a; }
ICY_INLINE Pack larger(float a, Pack b) { const Vector x = limit(a); ICY_EACH b.v[i] = larger(x, b.v[i]); return b; }
ICY_INLINE Pack smaller(float a, Pack b) { const Vector x = limit(a); ICY_EACH b.v[i] = smaller(x, b.v[i]); return b; }
ICY_INLINE Vector larger(float a, Vector b) { return larger(limit(a), b); }
ICY_INLINE Vector smaller(float a, Vector b) { return smaller(limit(a), b); }

ICY_INLINE Pack load_pack(const float* from) {
    Pack x;
    ICY_EACH x.v[i] = load(from + i * LANES);
    return x;
}

ICY_INLINE void store(float* to, Pack x) { ICY_EACH store(to + i * LANES, x.v[i]); }

// p times 2^k, for k in the low bits of `shifted`.
ICY_INLINE Vector times_power(Vector p, Vector shifted) { return (Vector)((Integers)p + ((Integers)shifted << 23)); }
ICY_INLINE Pack times_power(Pack p, Pack shifted) {
    ICY_EACH p.v[i] = times_power(p.v[i], shifted.v[i]);
    return p;
}
#undef ICY_EACH

// e^x for |x| < 87 to about two units in the last place: 2^k times a polynomial of the rest, |rest| <= ln 2 / 2 (Cephes).
template <class T>
ICY_INLINE T moderate_exponential(T x) {
    const T shifted = x * 1.44269504f + 12582912.f;  // 1.5 * 2^23: the sum is rounded to whole numbers
    const T k = shifted - 12582912.f;
    T r = x - k * 0.693359375f;
    r = r - k * -2.12194440e-4f;
    T p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.f;
    return times_power(p, shifted);
}

template <class T>
ICY_INLINE T exponential(T x) {
    return moderate_exponential(larger(-87.f, smaller(87.f, x)));
}

// ln x for positive normal numbers (Cephes).
ICY_INLINE Vector logarithm(Vector x) {
    const Integers bits = (Integers)x;
    Integers exponent = ((bits >> 23) & 255) - 126;
    Vector m = (Vector)((bits & 0x007fffff) | 0x3f000000);  // in [0.5, 1)
    const Integers low = m < 0.70710678f;
    exponent += low;  // a true comparison is -1
    m = m + (Vector)(low & (Integers)m) - 1.f;
    const Vector e = __builtin_convertvector(exponent, Vector), z = m * m;
    Vector p = all(7.0376836292e-2f);
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    p = p * m * z + e * -2.12194440e-4f - z * 0.5f;
    return m + p + e * 0.693359375f;
}

constexpr float FLAT = 40.f;  // above, a sigmoid is 0 or 1 in single precision; the product of two e^40 is still finite

template <class T>
ICY_INLINE T grown(T x) {
    return 1.f + moderate_exponential(larger(-FLAT, smaller(FLAT, -x)));
}

template <class T>
ICY_INLINE T sigmoid(T x) {
    return 1.f / grown(x);
}

template <class T>
ICY_INLINE T tangent(T x) {
    return 2.f / grown(x + x) - 1.f;
}

}  // namespace ICY_NAMESPACE
