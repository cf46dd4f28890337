import os
import signal
import subprocess
import sys
import time
from pathlib import Path

CHILD = """
import os, signal, time
from openrecipes.rehearse.parent import end_with_parent
{}
print("up", flush=True)
time.sleep(60)
"""
# The process in the middle starts the child, passes its id on and waits.
MIDDLE = """
import subprocess, sys
print(subprocess.Popen([sys.executable, "-c", sys.argv[1]]).pid, flush=True)
sys.stdin.read()
"""


def orphan_survives(call: str) -> bool:
    """Kill the parent of a process that made the call, and see whether it is still there."""
    with subprocess.Popen(
        [sys.executable, "-c", MIDDLE, CHILD.format(call)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as middle:
        pid = int(middle.stdout.readline())
        assert middle.stdout.readline() == "up\n"
        middle.kill()
        middle.wait()
    for _ in range(50):
        if not Path(f"/proc/{pid}").exists() or ") Z " in Path(f"/proc/{pid}/stat").read_text():
            return False
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    return True


def test_a_process_ends_with_its_parent_only_where_it_asked_to():
    assert not orphan_survives("end_with_parent(os.getppid(), signal.SIGKILL)")
    assert orphan_survives("pass")


def test_a_parent_that_has_gone_already_ends_the_process_at_once():
    done = subprocess.run([sys.executable, "-c", CHILD.format("end_with_parent(-1, signal.SIGKILL)")], check=False)
    assert done.returncode == -signal.SIGKILL
