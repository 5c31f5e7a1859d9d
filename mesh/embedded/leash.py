"""`python -m mesh.embedded.leash PARENT COMMAND…`: runs the command, and ends it when the parent is gone.

For systems without PR_SET_PDEATHSIG.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

LOOK_EVERY_S = 0.5


def hold(parent: int, command: list[str]) -> int:
    child = subprocess.Popen(command)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    while True:
        try:
            return child.wait(LOOK_EVERY_S)
        except subprocess.TimeoutExpired:
            if os.getppid() != parent:
                child.terminate()


if __name__ == "__main__":
    raise SystemExit(hold(int(sys.argv[1]), sys.argv[2:]))
