// Which variant was loaded.

#include "export.h"

// The bytes of a vector.
ICY_EXPORT(int, vector_bytes)() { return ICY_VECTOR_BYTES; }
