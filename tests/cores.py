"""Native cores, for tests that need them or that ask which engine "auto" chooses."""

from __future__ import annotations

import pytest

from icy.core import native
from icy.models.native.calls import PACKAGE

NO_NATIVE = native.why_not(PACKAGE)
FASTEST = "broadcast" if NO_NATIVE else "native"  # the engine of icy's models on a CPU, unless another is asked for
needs_native = pytest.mark.skipif(NO_NATIVE is not None, reason=f"no native cores: {NO_NATIVE}")
both_engines = pytest.mark.parametrize("how", [pytest.param("native", marks=needs_native), "broadcast"])
