"""A rate limit per person, stored in memory, without people's addresses."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

MOST_KEPT = 10_000  # maximum number of buckets


@dataclass
class Limit:
    """A token-bucket rate limit: a request takes a token, and tokens are added at a constant rate.

    Attributes:
        rate: tokens added per second.
        burst: maximum number of tokens in a bucket.
        clock: function that returns the time in seconds.
    """

    rate: float = 10.0
    burst: float = 60.0
    clock: Callable[[], float] = time.monotonic
    _buckets: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def allows(self, name: str) -> bool:
        """Take a token from the bucket of a name, and return whether the bucket had one.

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
