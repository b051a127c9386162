// The variant that was loaded.

#include "export.h"

// The number of bytes of a vector.
ICY_EXPORT(int, vector_bytes)() { return ICY_VECTOR_BYTES; }
