from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from openrecipes.errors import ContentError
from openrecipes.verify.components import judge_components, parse_component_results
from openrecipes.verify.verdict import Result


def results(*, error: float = 1e-6, controls: tuple[float, ...] = (0.2, 0.5), **changes: Any) -> bytes:
    test = {
        "test": "gated delta rule against an FP64 recurrence",
        "implementation": "torch chunk rule",
        "shape": "2 x 50 x 4 x 16",
        "dtype": "float32",
        "bound": 1e-5,
        "bound_source": "20 times the FP32 rounding of the sums",
        "error": error,
        "controls": [{"name": f"control {n}", "error": value} for n, value in enumerate(controls)],
    }
    return json.dumps({"format_version": 1, "tests": [test | changes]}).encode()


def judged(content: bytes) -> Result:
    return judge_components(parse_component_results(content, Path("component_results.json")))[0]


def test_an_error_within_the_bound_and_controls_outside_pass() -> None:
    result, (verdict,) = judge_components(parse_component_results(results(), Path("x")))
    assert result is Result.PASS
    assert verdict.detail == "error 1e-06, bound 1e-05; all 2 controls outside (nearest 0.2)"


@pytest.mark.parametrize(
    "content",
    [
        results(error=1.1e-5),
        results(controls=(0.2, 9e-6)),
        results(controls=(0.2, 1e-5)),
        results(error=math.nan),
        results(error=-1e-9),
        results(controls=(0.2, math.nan)),
        results(controls=(math.inf,)),
    ],
)
def test_a_wrong_part_or_a_test_that_cannot_fail_fails(content: bytes) -> None:
    assert judged(content) is Result.FAIL


def test_no_control_or_no_test_is_inconclusive() -> None:
    assert judged(results(controls=())) is Result.INCONCLUSIVE
    assert judged(b'{"format_version": 1, "tests": []}') is Result.INCONCLUSIVE


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"\xff\xfe",
        results(bound=math.inf),
        results(bound=0.0),
        results(bound="1e-5"),
        results(error=None),
        results(verdict="pass"),
        b'{"format_version": 2, "tests": []}',
    ],
)
def test_what_are_no_component_results_is_refused_with_its_place(content: bytes) -> None:
    with pytest.raises(ContentError, match=r"component_results\.json"):
        parse_component_results(content, Path("component_results.json"))
