"""The guard on stand-ins for torch, Triton and FLA (stubs/): fast, and without a GPU or a download."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import venv
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

PATCHES = Path(__file__).parents[2] / "patches"
STUBS = Path(__file__).parent / "stubs"

FORCED = {"FLA_GUARD_FORCE": "1"}
CUT = (
    "chunk_gated_delta_rule_fwd_kernel_h_blockdim64=12->6 prepare_wy_repr_bwd_kernel=6->1 "
    "chunk_fwd_kernel_o=3->2 chunk_bwd_kernel_dv_local=9->6"
)
UNCUT = (
    "chunk_gated_delta_rule_fwd_kernel_h_blockdim64=12->12 prepare_wy_repr_bwd_kernel=6->6 "
    "chunk_fwd_kernel_o=3->3 chunk_bwd_kernel_dv_local=9->9"
)


def printed(process: subprocess.CompletedProcess[str]) -> str:
    assert process.returncode == 0, process.stderr
    return process.stdout


def refused(process: subprocess.CompletedProcess[str]) -> str:
    assert process.returncode == 1, process.stdout
    return process.stderr


@pytest.mark.parametrize("capability", ["10.0", "10.3", "12.0", "12.1"])
def test_blackwell_keeps_only_the_safe_configurations(run, capability):
    out = printed(run("import fla_blackwell_guard as g, fla.ops; g.verify()", STUB_CAPABILITY=capability))
    assert out == f"[fla-guard] active capability={capability} triton=3.6.0 fla=0.4.1 {CUT}\n"


@pytest.mark.parametrize("gpu", [{}, {"STUB_CAPABILITY": "9.0"}, {"STUB_CAPABILITY": "12.0", "STUB_VENDOR": "hip"}])
def test_other_machines_are_left_alone(run, gpu):
    capability = "9.0" if gpu.get("STUB_CAPABILITY") == "9.0" else "none"
    out = printed(run("import fla_blackwell_guard as g, fla.ops; g.verify()", **gpu))
    assert out == f"[fla-guard] inactive capability={capability} triton=3.6.0 fla=0.4.1 {UNCUT}\n"


def test_the_configurations_that_stay_are_the_safe_ones(run):
    code = """
        import fla_blackwell_guard
        from fla.ops.common.chunk_delta_h import chunk_gated_delta_rule_fwd_kernel_h_blockdim64 as state
        from fla.ops.common.chunk_o import chunk_bwd_kernel_dv_local as local, chunk_fwd_kernel_o as output
        from fla.ops.gated_delta_rule.wy_fast import prepare_wy_repr_bwd_kernel as wy
        for tuner in (state.fn, wy.fn, output.fn, local):
            print(sorted({(c.num_warps, c.num_stages) for c in tuner.configs}))
    """
    line, state, wy, output, local = printed(run(code, **FORCED)).splitlines()
    assert line == f"[fla-guard] forced capability=none triton=3.6.0 fla=0.4.1 {CUT}"
    assert state == "[(2, 2), (2, 3), (2, 4)]"
    assert wy == "[(2, 4)]"
    assert output == "[(2, 3), (4, 3)]"
    assert local == "[(2, 2), (2, 3), (2, 4), (4, 2), (4, 3), (4, 4)]"


def test_a_kernel_of_the_same_name_and_an_unlisted_kernel_are_left_alone(run):
    code = """
        import fla_blackwell_guard
        from fla.ops.common.chunk_o import chunk_bwd_kernel_dqkwg
        from fla.ops.delta_rule.wy_fast import prepare_wy_repr_bwd_kernel
        print(len(prepare_wy_repr_bwd_kernel.configs), len(chunk_bwd_kernel_dqkwg.configs))
        print(type(prepare_wy_repr_bwd_kernel.cache).__name__)
    """
    assert printed(run(code, **FORCED)).splitlines()[1:] == ["9 3", "dict"]


def test_a_process_prints_one_line_and_only_if_it_imports_fla(run):
    code = """
        import importlib, fla_blackwell_guard
        import fla.ops.common.chunk_o as module
        fla_blackwell_guard.verify()
        importlib.reload(module)
        fla_blackwell_guard.verify()
    """
    assert printed(run(code, **FORCED)).count("[fla-guard]") == 1
    assert printed(run("import fla_blackwell_guard, fla, triton, torch", **FORCED)) == ""


def test_looking_for_fla_before_importing_it_does_not_guard_it_twice(run):
    code = """
        import importlib.util, fla_blackwell_guard
        importlib.util.find_spec("fla.ops")
        importlib.util.find_spec("fla.ops")
        import fla.ops
    """
    assert printed(run(code, **FORCED)).endswith(f"fla=0.4.1 {CUT}\n")


def test_arming_imports_neither_torch_nor_triton(run):
    code = "import sys, fla_blackwell_guard; print({'torch', 'triton', 'fla', 'openrecipes'} & set(sys.modules))"
    assert printed(run(code)) == "set()\n"


def test_a_late_import_is_refused_even_where_import_errors_are_swallowed(run):
    code = """
        import fla.ops
        try:
            import fla_blackwell_guard
        except ImportError:
            pass
    """
    error = refused(run(code))
    assert "GuardError: [fla-guard] too late: FLA was imported before fla_blackwell_guard" in error
    assert ".pth" in error


@pytest.mark.parametrize("configs", ["[triton.Config({}, num_warps=8)] * 2", "[]", "None"])
def test_a_kernel_without_a_safe_configuration_is_refused(run, configs):
    code = f"""
        import fla_blackwell_guard, fla.ops, triton
        def chunk_fwd_kernel_o(q): ...
        chunk_fwd_kernel_o.__module__ = "fla.ops.common.chunk_o"
        triton.autotune(configs={configs}, key=[])(triton.jit(chunk_fwd_kernel_o))
    """
    error = refused(run(code, **FORCED))
    assert "GuardError: [fla-guard] none of the " in error
    assert "configurations of fla.ops.common.chunk_o.chunk_fwd_kernel_o (safe: num_warps (1, 2, 4)" in error
    assert printed(run(code)).startswith("[fla-guard] inactive")


def test_verify_names_everything_that_is_wrong_at_once(run):
    code = """
        import sys, types, fla_blackwell_guard, triton
        sys.modules["fla.ops.gated_delta_rule.wy_fast"] = types.ModuleType("renamed kernel")
        sys.modules["fla.ops.gated_delta_rule"] = types.ModuleType("package without it")
        from fla.ops.common import chunk_delta_h, chunk_o
        chunk_o.chunk_fwd_kernel_o.fn.configs.append(triton.Config({}, num_warps=8))
        chunk_delta_h.chunk_gated_delta_rule_fwd_kernel_h_blockdim64.fn.cache = {1: triton.Config({}, num_warps=4)}
        fla_blackwell_guard.verify()
    """
    error = refused(run(code, **FORCED))
    assert "FLA 0.4.1 has no fla.ops.gated_delta_rule.wy_fast.prepare_wy_repr_bwd_kernel (safe: " in error
    assert "`{}, num_warps: 8, num_stages: 3` is held by fla.ops.common.chunk_o.chunk_fwd_kernel_o (safe: " in error
    assert "`{}, num_warps: 4, num_stages: 3` is held by fla.ops.common.chunk_delta_h.chunk_gated_delta_" in error
    assert error.count("is held by") == 2
    assert error.count("has no") == 1


def test_verify_reports_a_module_that_is_gone(run):
    code = """
        import sys, fla_blackwell_guard
        sys.modules["fla.ops.common.chunk_o"] = None
        sys.modules["fla.ops.common"] = __import__("types").ModuleType("package without it")
        sys.modules["fla.ops.common"].__path__ = []
        fla_blackwell_guard.verify()
    """
    assert "fla.ops.common.chunk_o cannot be imported: " in refused(run(code, **FORCED))


def test_verify_alone_guards_a_trainer_that_has_not_imported_fla_yet(run):
    code = """
        from types import SimpleNamespace
        import importlib
        load_function = lambda path: getattr(importlib.import_module(path.rpartition(".")[0]), path.rpartition(".")[2])
        load_function("fla_blackwell_guard.verify")(SimpleNamespace(rank=0))
    """
    assert CUT in printed(run(code, STUB_CAPABILITY="10.0"))


@pytest.mark.parametrize(("warps", "accepted"), [(4, True), (8, False)])
def test_a_configuration_from_a_file_has_to_be_safe_too(run, warps, accepted):
    code = f"""
        import fla_blackwell_guard, triton
        from fla.ops.common.chunk_o import chunk_fwd_kernel_o
        chunk_fwd_kernel_o.fn.load_cached_config("key", triton.Config({{}}, num_warps={warps}))
        print(chunk_fwd_kernel_o.fn.cache)
    """
    process = run(code, **FORCED)
    if accepted:
        assert printed(process).endswith("{'key': {}, num_warps: 4, num_stages: 3}\n")
    else:
        assert "`{}, num_warps: 8, num_stages: 3` was about to be run by fla.ops.common.chunk_o" in refused(process)
        assert "FLA_CACHE_MODE" in process.stderr
    assert "num_warps: " in printed(run(code))  # the same file, without a Blackwell GPU


@pytest.mark.parametrize("hook", ["pth", "sitecustomize"])
def test_a_site_hook_reaches_processes_started_by_spawn(tmp_path, hook):
    """Exactly as README.md installs it; the parent never imports FLA, its spawned child does."""
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    purelib = tmp_path / "venv" / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    hooks = purelib if hook == "pth" else tmp_path / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "fla_blackwell_guard.py").write_bytes((PATCHES / "fla_blackwell_guard.py").read_bytes())
    name = "fla_blackwell_guard.pth" if hook == "pth" else "sitecustomize.py"
    (hooks / name).write_text("import fla_blackwell_guard\n", encoding="utf-8")
    code = """
import importlib, multiprocessing
child = multiprocessing.get_context("spawn").Process(target=importlib.import_module, args=("fla.ops",))
child.start()
child.join()
raise SystemExit(child.exitcode)
"""
    process = subprocess.run(
        [python, "-c", code],
        env={"PYTHONPATH": f"{STUBS}:{hooks}", "STUB_CAPABILITY": "10.0"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert printed(process) == f"[fla-guard] active capability=10.0 triton=3.6.0 fla=0.4.1 {CUT}\n"


@pytest.fixture(scope="module")
def guard() -> ModuleType:
    """The module itself, disarmed, for its pure parts."""
    spec = importlib.util.spec_from_file_location("fla_blackwell_guard", PATCHES / "fla_blackwell_guard.py")
    assert spec is not None
    assert spec.loader is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "meta_path", list(sys.meta_path))
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
    return module


@given(
    st.integers(0, 3),
    st.lists(st.builds(SimpleNamespace, num_warps=st.sampled_from([1, 2, 4, 8, 16]), num_stages=st.integers(1, 5))),
)
def test_cut_keeps_every_allowed_configuration_in_order_and_no_other(guard, index, configs):
    rule = guard.RULES[index]
    allowed = [
        config
        for config in configs
        if config.num_warps in rule.num_warps and (not rule.num_stages or config.num_stages in rule.num_stages)
    ]
    if allowed:
        assert rule.cut(configs) == allowed
    else:
        with pytest.raises(guard.GuardError, match="none of the"):
            rule.cut(configs)
