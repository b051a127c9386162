// What a library holds and what this processor runs; icy.core.native asks for it when it loads the library.

#include <cstring>

#define PUBLIC extern "C" __attribute__((visibility("default")))

// The variants in this library, worst to best, separated by spaces.
PUBLIC const char* icy_built() { return ICY_BUILT; }

// The hash of the sources of this library.
PUBLIC const char* icy_sources() { return ICY_SOURCES; }

// Whether this processor and its system run a variant.
PUBLIC int icy_runs(const char* variant) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool sse = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
    const bool avx2 = sse && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl");
    if (!std::strcmp(variant, "baseline")) return sse;
    if (!std::strcmp(variant, "avx2")) return avx2;
    return avx512 && !std::strcmp(variant, "avx512");
#else
    return !std::strcmp(variant, "neon");
#endif
}
