"""Do other Python versions build the same rows? Prints rows_sha256 for each interpreter that is here.

    python benchmarks/data_pythons.py                              # a toy encoder
    python benchmarks/data_pythons.py --tokenizer DIR --source S   # a real build

Each interpreter (python3.11 to python3.14 on PATH, or those given with --python) gets a virtual environment
with the `data` packages, made in a temporary folder. Exit code 1 when two differ.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
NAMES = [f"python3.{minor}" for minor in range(11, 15)]
# What the builder imports; named here so that the figure does not depend on which extras are declared.
PACKAGES = ["pyarrow", "tokenizers", "jinja2", "huggingface_hub"]


def works(python: str) -> bool:
    return subprocess.run([python, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0


def rows_sha256(python: str, folder: Path, arguments: argparse.Namespace) -> str:
    subprocess.run([python, "-m", "venv", folder / "venv"], check=True)
    own = folder / "venv" / "bin" / "python"
    subprocess.run([own, "-m", "pip", "install", "--quiet", str(ROOT), *PACKAGES], check=True)
    if arguments.tokenizer is None:
        sys.path.insert(0, str(ROOT / "tests" / "data"))
        import toy

        toy.write_source(folder / "chat.jsonl", 600)
        command = [own, toy.__file__, folder / "chat.jsonl", folder / "rows"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return done.stdout.strip()
    command = [folder / "venv" / "bin" / "openrecipes", "data", "build"]
    command += ["--source", arguments.source, "--tokenizer", arguments.tokenizer]
    command += ["--row-tokens", "1024", "--rows", "200", "--max-rejected", "100000", "--out", folder / "rows", "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["manifest"]["rows_sha256"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer")
    parser.add_argument("--source")
    parser.add_argument("--python", action="append", help="an interpreter; may be given several times")
    arguments = parser.parse_args()
    found: dict[str, str] = {}
    for name in arguments.python or NAMES:
        python = shutil.which(name)
        if python is None or not works(python):
            print(f"{name:<12} not here")
            continue
        with tempfile.TemporaryDirectory() as folder:
            found[name] = rows_sha256(python, Path(folder), arguments)
        print(f"{name:<12} {found[name]}", flush=True)
    if len(found) < 2:
        print("not checked: fewer than two interpreters are here")
        return 0
    same = len(set(found.values())) == 1
    print("all the same" if same else "DIFFERENT")
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
