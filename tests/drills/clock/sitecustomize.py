"""On PYTHONPATH, it sets a process's clock `DRILLS_CLOCK_S` seconds ahead: what `time.time` says, and so what asyncio,
logging and arq are told. `datetime.now` and the monotonic clock are left alone."""

import os
import time

_AHEAD = float(os.environ.get("DRILLS_CLOCK_S", "0"))
_time, _time_ns = time.time, time.time_ns

time.time = lambda: _time() + _AHEAD
time.time_ns = lambda: _time_ns() + int(_AHEAD * 1e9)
