"""In front of a part that may be gone: who asks for it waits once, and not everyone after them, too."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from mesh.errors import Misconfigured, TimedOut, Unavailable

log = logging.getLogger(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 5.0
REST = 4
"""So many times as long as a failure took, at least."""

Result = TypeVar("Result")


class Hangs(Unavailable):
    """It takes calls, and does not answer."""


class Breaker:
    """After a failure the part is left alone for a while, for longer each time; then one caller tries it, and the
    others go on without it meanwhile. Calls that were under way at a failure fail with it: they count as one."""

    def __init__(self, part: str, *, within: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`within`: seconds that one call may take."""
        self._part = part
        self._within = within
        self._clock = clock
        self._pause = 0.0
        self._alone_until = 0.0
        self._failed_at = -math.inf

    async def call(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Raises `Unavailable`: at once while the part is left alone, and as `Hangs` when it took too long."""
        began = self._clock()
        if began < self._alone_until:
            raise Unavailable(detail=f"{self._part} is left alone")
        if self._pause:
            self._alone_until = began + self._within
        try:
            async with asyncio.timeout(self._within):
                result = await work()
        except TimeoutError as error:
            self._failed(began)
            raise Hangs(detail=f"{self._part}: no answer within {self._within:.1f} s") from error
        except (Unavailable, TimedOut, Misconfigured) as error:
            self._failed(began)
            raise Unavailable(detail=f"{self._part}: {error.detail or error.code}") from error
        if self._pause:
            log.info("↻ part=%s is back", self._part)
        self._pause = self._alone_until = 0.0
        return result

    def leave_alone(self, cost_s: float) -> None:
        """For as long as makes what a failure costs bearable."""
        self._failed(self._clock() - cost_s)

    def _failed(self, began: float) -> None:
        if began <= self._failed_at:
            return
        self._failed_at = self._clock()
        cost_s = self._failed_at - began
        self._pause = max(min(2 * self._pause or FIRST_PAUSE_S, LONGEST_PAUSE_S), REST * cost_s)
        self._alone_until = self._failed_at + self._pause
        log.warning("! part=%s failed took_s=%.2f left_alone_s=%.1f", self._part, cost_s, self._pause)
