import math

import pytest

from openrecipes.errors import UsageError
from openrecipes.rehearse.faults import FAULTS, Faults


def test_an_honest_run_has_no_fault():
    assert Faults.parse(()) == Faults()
    assert Faults().reported_loss(3, 1.5) == 1.5


@pytest.mark.parametrize("name", FAULTS)
def test_every_documented_fault_is_understood(name):
    assert Faults.parse([name.replace("_N", "_7")]) != Faults()


def test_the_loss_is_nan_at_the_named_steps_only():
    faults = Faults.parse(["nan_at_step_3", "nan_at_step_5"])
    assert [math.isnan(faults.reported_loss(step, 1.0)) for step in range(7)] == [False] * 3 + [
        True,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize("name", ["", "lr_factor", "nan_steps", "nan_at_step_N", "nan_at_step_-1", "lr_x1.2"])
def test_an_unknown_fault_is_refused_by_name(name):
    with pytest.raises(UsageError, match=r"unknown fault .*known are norm_grads_unreduced_over_tp"):
        Faults.parse(["lr_x1.1", name])
