import pytest

from openrecipes.engines.launcher import Target, python_launch
from openrecipes.engines.shell import parse_script


@pytest.mark.parametrize(
    ("script", "target", "at"),
    [
        ("python3 train.py --a", Target.FILE, "train.py"),
        ("/usr/bin/python3.12 -u -X dev -W ignore train.py", Target.FILE, "train.py"),
        ("python -m pkg.train --a", Target.MODULE, "pkg.train"),
        ("python3 -m --async", Target.MODULE, "--async"),
        ("python3 -c 'pass'", Target.CODE, "'pass'"),
        ("python3", Target.NOTHING, "python3"),
        ("python3 -m", Target.NOTHING, "-m"),
        ("python3 -u", Target.NOTHING, "-u"),
        ("python3 --actor-num-nodes 6", Target.NOTHING, "--actor-num-nodes"),
        ("ray job submit --address=x -- python3 train.py", Target.FILE, "train.py"),
    ],
)
def test_what_python_is_told_to_run(script: str, target: Target, at: str) -> None:
    launch = python_launch(parse_script(script).commands[0].words)
    assert launch is not None
    assert (launch.target, launch.at.source) == (target, at)


@pytest.mark.parametrize("script", ["bash run.sh", "$PYTHON train.py", "pythonic train.py", "ray job submit", "env"])
def test_other_programs_are_no_python(script: str) -> None:
    assert python_launch(parse_script(script).commands[0].words) is None
