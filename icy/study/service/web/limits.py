"""A limit to how often one person may ask; in memory, and of nobody's address."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

MOST_KEPT = 10_000


@dataclass
class Limit:
    """Buckets of tokens: each request takes one, and they fill up again.

    Attributes:
        rate: requests per second in the long run.
        burst: requests at once.
        clock: seconds.
    """

    rate: float = 10.0
    burst: float = 60.0
    clock: Callable[[], float] = time.monotonic
    _buckets: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def allows(self, name: str) -> bool:
        """Take a token of someone's bucket; return whether there was one.

        Example:
            >>> limit = Limit(rate=1, burst=2, clock=lambda: 0.0)
            >>> [limit.allows("a"), limit.allows("a"), limit.allows("a"), limit.allows("b")]
            [True, True, False, True]
        """
        now = self.clock()
        with self._lock:
            left, then = self._buckets.pop(name, (self.burst, now))
            left = min(self.burst, left + (now - then) * self.rate)
            self._buckets[name] = (left - 1 if left >= 1 else left, now)
            if len(self._buckets) > MOST_KEPT:
                self._buckets.popitem(last=False)
        return left >= 1
