// Names of what a source exports. Each source is compiled once per variant (baseline, avx2, ...), all into one library,
// so nothing in it may have the same name in two variants:
//
//     #include "export.h"
//     namespace ICY_NAMESPACE { ... }                      // all that is not exported
//     ICY_EXPORT(void, scale)(float* x, int64_t n) { ... }  // exported as scale_avx2 and so on
//
// No exceptions, and of the standard library only what its headers hold (build.py); no threads: Python's call these.

#pragma once

#define ICY_JOIN_NOW(a, b) a##_##b
#define ICY_JOIN(a, b) ICY_JOIN_NOW(a, b)

#define ICY_NAMESPACE ICY_JOIN(icy, ICY_VARIANT)
#define ICY_EXPORT(type, name) extern "C" __attribute__((visibility("default"))) type ICY_JOIN(name, ICY_VARIANT)

// The width of the variant's vectors.
#if defined(__AVX512F__)
#define ICY_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define ICY_VECTOR_BYTES 32
#else
#define ICY_VECTOR_BYTES 16
#endif
