"""Bad input to the verbs, as real processes: one clear message, the documented exit code, nothing half-written.

All that is said stands in one golden file, `tests/golden/bad-input.txt`, where a person can read it in one go.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from openrecipes.recipe.catalogue import shipped_recipes

EXAMPLES = Path(__file__).parents[2] / "examples"
WORKLOAD = EXAMPLES / "tiny-qwen3.5-moe.workload.yaml"
(ENTRY,) = shipped_recipes().values()
COMMAND = [Path(sys.executable).with_name("openrecipes")]


def run(*arguments: object, cwd: Path, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1"},
        **options,  # type: ignore[call-overload]
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of each kind of bad file, beside a good workload (`good.yaml`) and a good entry (`entry.yaml`)."""
    folder = tmp_path_factory.mktemp("bad")
    shutil.copytree(EXAMPLES / "tiny-qwen3.5-moe", folder / "tiny-qwen3.5-moe")
    shutil.copy(ENTRY, folder / "entry.yaml")
    good = yaml.safe_load(WORKLOAD.read_text())
    entry = ENTRY.read_text()

    def write(name: str, change: Callable[[dict], object]) -> None:
        fields = yaml.safe_load(WORKLOAD.read_text())
        change(fields)
        (folder / name).write_text(yaml.safe_dump(fields, sort_keys=False))

    write("good.yaml", lambda fields: None)
    (folder / "directory").mkdir()
    (folder / "empty.yaml").write_text("")
    (folder / "binary.yaml").write_bytes(bytes(range(256)) * 40)
    (folder / "list.yaml").write_text("- 1\n- 2\n")
    (folder / "50mb.yaml").write_text("a: 1\n" * (50 * 2**20 // 5))
    (folder / "loop.yaml").symlink_to("loop.yaml")
    (folder / "gpu.yaml").write_text(entry.replace("type: B200", "type: B2000"))
    (folder / "count.yaml").write_text(entry.replace("count: 48", "count: 24"))
    write("words.yaml", lambda f: f.update(ranks="four", steps=True, window=[19, 5]))
    write("typo.yaml", lambda f: (f.update(rank=4), f.pop("ranks")))
    write("nan.yaml", lambda f: f["optimizer"].update(lr=float("nan")))
    write("ranks.yaml", lambda f: f.update(ranks=65))
    write("rows.yaml", lambda f: f.update(steps=30, window=[20, 30]))
    write("layout.yaml", lambda f: f["reference"].update(layout="tp=3,xp=2"))
    write("reference.yaml", lambda f: f["reference"].update(layout="tp=4", ranks=2))
    write("three.yaml", lambda f: f.update(ranks=3))
    write("license.yaml", lambda f: f["data"]["source"].update(license="CC0"))
    write("package.yaml", lambda f: f["data"]["source"].update(package="no-such-package"))
    write("tokenizer.yaml", lambda f: f["data"]["tokenizer"].update(name="qwen3.5-35b-a3"))
    write("many.yaml", lambda f: f["data"].update(row_tokens=2**20, rows=2**20))
    for name in ("missing", "directory", "text", "list", "unknown"):
        model = {"missing": "nowhere/config.json", "directory": "directory"}.get(name, f"{name}-config.json")
        write(f"model-{name}.yaml", lambda f, model=model: f.update(model=model))
    (folder / "text-config.json").write_text("hello")
    (folder / "list-config.json").write_text("[]")
    (folder / "unknown-config.json").write_text('{"architectures": ["MysteryForCausalLM"], "model_type": "mystery"}')
    (folder / "regular-file").write_text("")
    assert good["ranks"] == 4
    return folder


CASES = {
    "check": ["missing.yaml", "directory", "empty.yaml", "binary.yaml", "list.yaml", "50mb.yaml", "loop.yaml",
              "gpu.yaml", "count.yaml", "entry.yaml --usd-per-gpu-hour 0"],
    "show": ["missing.yaml", "directory", "empty.yaml", "binary.yaml"],
    "explain": ["layout.ttp", "A999"],
    "tune": [f"{name} --out out" for name in (
        "missing.yaml", "directory", "empty.yaml", "binary.yaml", "list.yaml", "50mb.yaml", "loop.yaml", "words.yaml",
        "typo.yaml", "nan.yaml", "ranks.yaml", "rows.yaml", "layout.yaml", "reference.yaml", "three.yaml",
        "license.yaml", "package.yaml", "tokenizer.yaml", "many.yaml", "model-missing.yaml", "model-directory.yaml",
        "model-text.yaml", "model-list.yaml", "model-unknown.yaml")]
    + ["good.yaml --out regular-file/out", "good.yaml --out regular-file", "good.yaml --out /proc/out"],
    "rehearse": [f"good.yaml --out out --layout {layout}" for layout in (
        "tp=3", "tp=2,pp=4", "tp=8", "tp=2,ep=2,etp=1,sp=false", "tp=two", "vpp=2", "ep=3")]
    + ["good.yaml --out out --layout tp=1 --ranks 5",
       "good.yaml --out out --layout tp=1 --steps 21", "good.yaml --out directory/../tiny-qwen3.5-moe --layout tp=1",
       "good.yaml --out regular-file/out --layout tp=1"],
}  # fmt: skip


def said(folder: Path, verb: str, arguments: str) -> str:
    done = run(verb, *arguments.split(), cwd=folder)
    assert "Traceback" not in done.stderr, done.stderr
    text = "\n".join(line.rstrip() for line in f"{done.stderr}{done.stdout}".splitlines())
    return f"$ openrecipes {verb} {arguments}\n{text.replace(str(folder), '.')}\nexit code {done.returncode}\n"


@pytest.mark.parametrize(
    "arguments",
    ["", "tune", "tune good.yaml", "rehearse good.yaml --out out --layout tp=1 --ranks 0", "check", "no-such-verb"],
)
def test_a_wrong_call_is_a_usage_error(folder, arguments):
    done = run(*arguments.split(), cwd=folder)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_what_is_said_of_bad_input(folder, golden):
    before = sorted(str(path) for path in folder.rglob("*"))
    texts = [said(folder, verb, arguments) for verb, cases in CASES.items() for arguments in cases]
    golden("bad-input.txt", "\n".join(texts))
    assert sorted(str(path) for path in folder.rglob("*")) == before, "something was left behind"
