"""End a process with the one that started it, also where that is killed and can say nothing (Linux)."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with_parent(parent: int, by: signal.Signals) -> None:
    """Have the kernel send this process the signal `by` when the process `parent` ends.

    `parent` is the process id taken before this process started, so that a parent that has
    ended in between is noticed.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, by)
    if os.getppid() != parent:
        os.kill(os.getpid(), by)
