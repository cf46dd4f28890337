"""The guard on the real Triton and FLA, without a GPU; runs where they are installed (the `guard` extra).

What the kernels compute on a Blackwell GPU is not tested: without one, only the configurations are seen.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess

import pytest

pytestmark = pytest.mark.skipif(
    not (importlib.util.find_spec("triton") and importlib.util.find_spec("fla")),
    reason="needs Triton and FLA: pip install 'openrecipes[guard]'",
)

FORCED = {"FLA_GUARD_FORCE": "1"}

# Configurations that FLA offers without a GPU, and those that the guard keeps, in the order of the guard's rules.
COUNTS = {"0.4.1": {"offered": [12, 6, 3, 9], "kept": [6, 1, 2, 6]}}

LOOK = """
import inspect, json, sys
import {first}
from fla.ops.common import chunk_delta_h, chunk_o
from fla.ops.gated_delta_rule import wy_fast
from fla.ops.delta_rule import wy_fast as other
from triton.runtime.autotuner import Autotuner
{last}

def pairs(kernel):
    while not isinstance(kernel, Autotuner):
        kernel = kernel.fn
    return [(config.num_warps, config.num_stages) for config in kernel.configs]

print(json.dumps({{
    "version": sys.modules["fla"].__version__,
    "signature": list(inspect.signature(Autotuner.__init__).parameters),
    "homonym": len(pairs(other.prepare_wy_repr_bwd_kernel)),
    "kernels": [pairs(kernel) for kernel in (
        chunk_delta_h.chunk_gated_delta_rule_fwd_kernel_h_blockdim64,
        wy_fast.prepare_wy_repr_bwd_kernel,
        chunk_o.chunk_fwd_kernel_o,
        chunk_o.chunk_bwd_kernel_dv_local,
    )],
}}))
"""


def seen(process: subprocess.CompletedProcess[str]) -> tuple[list[str], dict]:
    assert process.returncode == 0, process.stderr
    *lines, last = process.stdout.splitlines()
    return lines, json.loads(last)


@pytest.fixture(scope="module")
def unguarded(run_real) -> dict:
    """What FLA offers when no guard is loaded; the guard is imported afterwards, and has to refuse."""
    late = "try:\n    import fla_blackwell_guard\nexcept RuntimeError as error:\n    print(error)"
    lines, found = seen(run_real(LOOK.format(first="json", last=late)))
    return found | {"late": lines}


@pytest.fixture(scope="module")
def forced(run_real) -> dict:
    last = "sys.modules['fla_blackwell_guard'].verify()"
    lines, found = seen(run_real(LOOK.format(first="fla_blackwell_guard", last=last), **FORCED))
    return found | {"lines": lines}


def test_forced_keeps_only_the_safe_configurations(unguarded, forced):
    state, wy, output, local = forced["kernels"]
    assert {warps for warps, _ in state} == {2}
    assert wy == [[2, 4]]
    assert {warps for warps, _ in output + local} == {2, 4}
    for before, after in zip(unguarded["kernels"], forced["kernels"], strict=True):
        assert after == [pair for pair in before if pair in after]


def test_the_counts_of_the_release_that_the_recipe_names(unguarded, forced):
    if unguarded["version"] not in COUNTS:
        pytest.skip(f"the counts of FLA {unguarded['version']} are not recorded")
    expected = COUNTS[unguarded["version"]]
    assert [len(configs) for configs in unguarded["kernels"]] == expected["offered"]
    assert [len(configs) for configs in forced["kernels"]] == expected["kept"]


def test_the_line_gives_versions_and_counts(unguarded, forced):
    (line,) = forced["lines"]
    assert line.startswith("[fla-guard] forced capability=")
    assert f" fla={forced['version']} " in line
    for before, after in zip(unguarded["kernels"], forced["kernels"], strict=True):
        assert f"={len(before)}->{len(after)}" in line


def test_the_kernel_of_the_same_name_is_left_alone(unguarded, forced):
    assert forced["homonym"] == unguarded["homonym"] > 1


def test_a_late_import_is_refused(unguarded):
    (message,) = unguarded["late"]
    assert message.startswith("[fla-guard] too late")


def test_a_machine_without_blackwell_is_left_alone(run_real, unguarded):
    lines, found = seen(run_real(LOOK.format(first="fla_blackwell_guard", last="")))
    if lines[0].startswith("[fla-guard] active"):
        pytest.skip("this machine has a Blackwell GPU")
    assert lines[0].startswith("[fla-guard] inactive")
    assert found["kernels"] == unguarded["kernels"]


def test_the_stand_in_has_the_shape_of_the_real_autotuner(unguarded):
    shape = ["self", "fn", "arg_names", "configs", "key", "reset_to_zero", "restore_value"]
    assert unguarded["signature"][: len(shape)] == shape


def test_a_forbidden_configuration_in_a_file_is_refused(run_real, unguarded, tmp_path):
    config = {"kwargs": {"BK": 128, "BV": 128}, "num_warps": 8, "num_stages": 3, "num_ctas": 1, "maxnreg": None}
    path = tmp_path / "chunk_fwd_kernel_o.json"
    path.write_text(json.dumps({"kernel_name": "chunk_fwd_kernel_o", "default_config": config}), encoding="utf-8")
    code = """
        import fla_blackwell_guard
        from fla.ops.common.chunk_o import chunk_fwd_kernel_o
        tuner = chunk_fwd_kernel_o.fn
        print("reads files", hasattr(tuner, "maybe_load_cached_config"))
        tuner.run()
    """
    process = run_real(code, FLA_CACHE_MODE="default", FLA_CONFIG_DIR=str(tmp_path), **FORCED)
    if "reads files False" in process.stdout:
        pytest.skip(f"FLA {unguarded['version']} reads no configuration files")
    assert "GuardError: [fla-guard] `BK: 128, BV: 128, num_warps: 8" in process.stderr
    assert "was about to be run by fla.ops.common.chunk_o.chunk_fwd_kernel_o" in process.stderr
