"""Bad input to the verbs: one clear message, the documented exit code, nothing half-written.

All that is said stands in one golden file, `tests/golden/bad-input.txt`, where a person can read it in one go.
"""

from __future__ import annotations

import json
import os
import pty
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from openrecipes.cli.main import main
from openrecipes.recipe.catalogue import shipped_recipes

EXAMPLES = Path(__file__).parents[2] / "examples"
WORKLOAD = EXAMPLES / "tiny-qwen3.5-moe.workload.yaml"
(ENTRY,) = shipped_recipes().values()
COMMAND = [sys.executable, "-c", "from openrecipes.cli.main import main; main()"]
LONG_NAME = 300 * "x"


def run(*arguments: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1", **environment},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of each kind of bad file, beside a good workload (`good.yaml`) and a good entry (`entry.yaml`)."""
    folder = tmp_path_factory.mktemp("bad")
    shutil.copytree(EXAMPLES / "tiny-qwen3.5-moe", folder / "tiny-qwen3.5-moe")
    shutil.copy(ENTRY, folder / "entry.yaml")
    entry = ENTRY.read_text()

    def write(name: str, change: Callable[[dict], object] = lambda fields: None) -> None:
        fields = yaml.safe_load(WORKLOAD.read_text())
        change(fields)
        (folder / name).write_text(yaml.safe_dump(fields, sort_keys=False))

    (folder / "directory").mkdir()
    (folder / "empty.yaml").write_text("")
    (folder / "binary.yaml").write_bytes(bytes(range(256)) * 40)
    (folder / "list.yaml").write_text("- 1\n- 2\n")
    (folder / "50mb.yaml").write_text("a: 1\n" * (50 * 2**20 // 5))
    (folder / "loop.yaml").symlink_to("loop.yaml")
    os.mkfifo(folder / "fifo.yaml")
    (folder / "[red] é.yaml").write_text("- 1\n")
    (folder / "gpu.yaml").write_text(entry.replace("type: B200", "type: B2000"))
    (folder / "count.yaml").write_text(entry.replace("count: 48", "count: 24"))
    (folder / "regular-file").write_text("")
    write("good.yaml")
    write("words.yaml", lambda f: f.update(ranks="four", steps=True, window=[19, 5]))
    write("typo.yaml", lambda f: (f.update(rank=4), f.pop("ranks")))
    write("nan.yaml", lambda f: f["optimizer"].update(lr=float("nan"), eps=0, beta1=1.0))
    write("ranks.yaml", lambda f: (f.update(ranks=65, window=[5]), f["reference"].update(ranks=65)))
    write("zero.yaml", lambda f: (f.update(ranks=0, global_batch=0), f["data"].update(rows=0, row_tokens=0, seed=-1)))
    write("rows.yaml", lambda f: f.update(steps=30, window=[20, 30]))
    write("layout.yaml", lambda f: f["reference"].update(layout="tp=3,xp=2"))
    write("reference.yaml", lambda f: f["reference"].update(layout="tp=4", ranks=2))
    write("three.yaml", lambda f: f.update(ranks=3))
    write("license.yaml", lambda f: f["data"]["source"].update(license="CC0"))
    write("package.yaml", lambda f: f["data"]["source"].update(package="no-such-package"))
    write("tokenizer.yaml", lambda f: f["data"]["tokenizer"].update(name="qwen3.5-35b-a3"))
    write("many.yaml", lambda f: f["data"].update(row_tokens=2**20, rows=2**20))
    write("vocabulary.yaml", lambda f: f["data"].update(row_tokens=1024))
    models = {
        "missing": "nowhere/config.json",
        "directory": "directory",
        "loop": "loop.yaml",
        "pipe": "fifo.yaml",
        "binary": "binary.yaml",
        "50mb": "50mb.yaml",
        "text": "text-config.json",
        "list": "list-config.json",
        "unknown": "unknown-config.json",
    }
    for name, model in models.items():
        write(f"model-{name}.yaml", lambda fields, model=model: fields.update(model=model))
    (folder / "text-config.json").write_text("hello")
    (folder / "list-config.json").write_text("[]")
    (folder / "unknown-config.json").write_text('{"architectures": ["MysteryForCausalLM"], "model_type": "mystery"}')
    return folder


FILES = ["missing.yaml", "directory", "empty.yaml", "binary.yaml", "list.yaml", "50mb.yaml", "loop.yaml", "fifo.yaml",
         "'[red] é.yaml'", LONG_NAME]  # fmt: skip

CASES = {
    "check": [*FILES, "gpu.yaml", "count.yaml", "entry.yaml --usd-per-gpu-hour 0", "empty.yaml --json"],
    "show": [*FILES, "no-such-entry", "empty.yaml --json"],
    "explain": ["layout.ttp", "A999", "''", "'[/red]'"],
    "tune": [f"{name} --out out" for name in (
        *FILES, "words.yaml", "typo.yaml", "nan.yaml", "ranks.yaml", "zero.yaml", "rows.yaml", "layout.yaml",
        "reference.yaml", "three.yaml", "license.yaml", "package.yaml", "tokenizer.yaml", "many.yaml",
        "vocabulary.yaml", "model-missing.yaml", "model-directory.yaml", "model-loop.yaml", "model-pipe.yaml",
        "model-binary.yaml", "model-50mb.yaml", "model-text.yaml", "model-list.yaml", "model-unknown.yaml")]
    + [f"good.yaml --out {out}" for out in (
        "regular-file/out", "regular-file", "/proc/out", "loop.yaml", ".", LONG_NAME)]
    + ["ranks.yaml --out out --dry-run", "list.yaml --out out --json"],
    "rehearse": [f"{name} --out out --layout tp=1" for name in FILES]
    + [f"good.yaml --out out --layout {layout}" for layout in (
        "tp=3", "tp=2,pp=4", "tp=8", "tp=2,ep=2,etp=1,sp=false", "tp=two", "vpp=2", "ep=3")]
    + [f"good.yaml --out out --layout tp=1 {sizes}" for sizes in ("--ranks 5", "--steps 21")]
    + [f"good.yaml --out {out} --layout tp=1" for out in (
        "directory/../tiny-qwen3.5-moe", "regular-file/out", "regular-file", "/proc/out", LONG_NAME)]
    + ["list.yaml --out out --layout tp=1 --json"],
}  # fmt: skip


@pytest.fixture
def said(folder, monkeypatch, capsys) -> Callable[[str, str], str]:
    """What a call says, and its exit code; in this process, since a hundred starts would take a minute."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")

    def call(verb: str, arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["openrecipes", verb, *shlex.split(arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code in (1, 2, 3, 4), f"{verb} {arguments}"
        captured = capsys.readouterr()
        text = "\n".join(line.rstrip() for line in f"{captured.err}{captured.out}".splitlines())
        told = f"$ openrecipes {verb} {arguments}\n{text}\nexit code {ended.value.code}\n"
        return told.replace(str(folder), ".").replace(LONG_NAME, "(300 times x)")

    return call


def test_what_is_said_of_bad_input(folder, said, golden):
    before = sorted(str(path) for path in folder.rglob("*"))
    golden("bad-input.txt", "\n".join(said(verb, arguments) for verb, cases in CASES.items() for arguments in cases))
    assert sorted(str(path) for path in folder.rglob("*")) == before, "something was left behind"


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "check",
        "no-such-verb",
        "tune",
        "tune good.yaml",
        "rehearse good.yaml --out out --layout tp=1 --ranks 0",
        "rehearse good.yaml --out out --layout tp=1 --ranks 65",
        "rehearse good.yaml --out out --layout tp=1 --steps 0",
        "rehearse good.yaml --out out",
    ],
)
def test_a_wrong_call_is_a_usage_error(folder, arguments):
    done = run(*arguments.split(), cwd=folder)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert not (folder / "out").exists()


@pytest.mark.parametrize("verb", ["check", "show", "tune --out out", "rehearse --out out --layout tp=1"])
def test_a_file_that_cannot_be_read_is_one_json_object_with_its_findings(folder, verb):
    done = run(*verb.split(), "list.yaml", "--json", cwd=folder)
    assert (done.returncode, done.stderr) == (1, "")
    found = json.loads(done.stdout)
    assert (found["format_version"], found["ok"]) == (1, False)
    assert [finding["id"] for finding in found["findings"]] == ["D104"]


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
        {"TERM": "dumb"},
        {"COLUMNS": "0"},
        {"COLUMNS": "wide"},
    ],
    ids=str,
)
def test_a_poor_terminal_gets_the_whole_report(folder, environment):
    done = run("check", "entry.yaml", cwd=folder, **environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("entry.yaml: level consistent")
    assert "A101" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("1 entry: 0 errors")


def test_a_file_name_that_is_no_text_is_shown_all_the_same(folder, tmp_path):
    name = os.fsdecode(b"\xff.yaml")
    shutil.copy(ENTRY, tmp_path / name)
    (tmp_path / name).write_text("- 1\n")
    assert "D104" in run("check", name, cwd=tmp_path).stdout
    (entry,) = json.loads(run("check", name, "--json", cwd=tmp_path).stdout)["entries"]
    assert entry["path"] == name
    assert "D104" in run("show", name, cwd=tmp_path).stderr


@pytest.mark.parametrize("verb", ["check", "show", "list", "tune --out out"])
def test_a_file_cannot_steer_the_terminal(tmp_path, verb):
    (tmp_path / "hostile.yaml").write_text('"\\e[2J\\e[31mowned": 1\n')
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [*COMMAND, *verb.split(), "hostile.yaml"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200", "NO_COLOR": "1"},
        timeout=60,
    )
    os.close(theirs)
    shown = b""
    while chunk := read_terminal(ours):
        shown += chunk
    os.close(ours)
    assert done.returncode == 1
    assert b"owned" in shown
    assert b"\x1b[2J" not in shown
    assert b"\x1b[31mowned" not in shown


def read_terminal(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # nobody has the other end open any more
        return b""


READING = ["check entry.yaml", "check entry.yaml --json", "show entry.yaml", "list", "schema", "explain layout.tp",
           "tune good.yaml --out out --dry-run", "rehearse good.yaml --out out --layout tp=1 --dry-run", "--help",
           "tune list.yaml --out out --json"]  # fmt: skip


@pytest.mark.parametrize("arguments", READING)
def test_output_that_nobody_reads_is_no_error(folder, arguments):
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run([*COMMAND, *arguments.split()], cwd=folder, stdout=theirs, stderr=subprocess.PIPE, text=True)
    os.close(theirs)
    assert done.stderr == ""
    assert done.returncode == 1


@pytest.mark.parametrize("arguments", READING)
def test_output_onto_a_full_disk_is_one_message(folder, arguments):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, *arguments.split()], cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.stderr == "openrecipes: No space left on device; make room, and start the same command again\n"
    assert done.returncode == 4
