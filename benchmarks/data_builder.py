"""The data builder beside the usual path: render, tokenize twice and mask, one conversation at a time.

    python benchmarks/data_builder.py [--conversations 4000] [--rows 12800] [--large-gb 5]

    per sample   transformers' apply_chat_template, the tokenizer with offsets, apply_chat_template(tokenize=True)
                 to compare, a mask by characters: what slime does at run time (slime/utils/mask_utils.py)
    ours         ConversationEncoder on the same conversations, in one process and one thread

Both are timed in CPU seconds after their tokenizers are loaded, and give the same ids and masks or the benchmark stops.
Conversations are real (chitchat-dataset) and no text comes twice; tokenizer and template come from registry packages.
Then whole builds: one worker beside two, by the clock, and the largest process on a generated source.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one thread each, before any of them starts
os.environ["RAYON_NUM_THREADS"] = "1"

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.data.assets import chitchat, qwen3_5_vocabulary
from tests.data.reference import by_characters

from openrecipes.data.conversation import Conversation, read_conversation
from openrecipes.data.counts import RowCounts
from openrecipes.data.encode import ConversationEncoder, Document, EncodeOptions
from openrecipes.data.packing import Packer
from openrecipes.data.table import ParquetRows

ROW_TOKENS = 8192
OPENRECIPES = Path(sys.executable).with_name("openrecipes")


def cpu_s(work: Any) -> tuple[float, Any]:
    """CPU seconds of this process for `work`, and its result."""
    started = time.process_time()
    found = work()
    return time.process_time() - started, found


def per_sample(records: list[dict], checkpoint: Path) -> tuple[float, list[tuple[list[int], list[int]]]]:
    """The usual path."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(checkpoint)

    def one(record: dict) -> tuple[list[int], list[int]]:
        ids, mask = by_characters(tokenizer, record["messages"], None, skip_think=True)
        again = tokenizer.apply_chat_template(record["messages"], tokenize=True, return_dict=False)
        if ids != again:
            raise ValueError("the tokenizer disagrees with itself")
        return ids, mask

    one(records[0])
    return cpu_s(lambda: [one(record) for record in records])


def ours(records: list[dict], checkpoint: Path, engine: str) -> tuple[dict[str, float], list[Document], str]:
    """Our path, stage by stage: CPU seconds of each, the documents, and the engine by name and version."""
    encoder = ConversationEncoder(EncodeOptions(tokenizer=str(checkpoint), engine=engine))
    stages: dict[str, float] = {}

    def read() -> list[Conversation]:
        return [one for one in map(read_conversation, records) if isinstance(one, Conversation)]

    stages["read the records"], conversations = cpu_s(read)
    encoder.encode(conversations[:1])

    def encode() -> list[Any]:
        return [one for n in range(0, len(records), 32) for one in encoder.encode(conversations[n : n + 32])]

    stages["render, tokenize, mask"], documents = cpu_s(encode)
    with tempfile.TemporaryDirectory() as folder:
        packer = Packer(
            eos=encoder.special("<|endoftext|>"), eos_supervised=False, row_tokens=ROW_TOKENS, clear_first=True
        )
        stages["pack"], rows = cpu_s(lambda: [row for document in documents for row in packer.add(document)])
        counts, table = RowCounts(ROW_TOKENS), ParquetRows(Path(folder), row_tokens=ROW_TOKENS, source_name="benchmark")
        stages["count and hash"], _ = cpu_s(lambda: [counts.add(row) for row in rows])
        stages["write Parquet"], _ = cpu_s(lambda: ([table.write(row) for row in rows], table.close()))
    found = encoder.describe()["engine"]
    return stages, documents, f"{found['name']} {found['version']}"


def compare(count: int, checkpoint: Path) -> None:
    """Print the CPU seconds of both paths on the same conversations, ours with either engine."""
    records = chitchat(count)
    slow_s, expected = per_sample(records, checkpoint)
    tokens = sum(len(ids) for ids, _ in expected)
    print(f"{len(records)} conversations, {tokens:,} tokens; CPU s per million tokens:")
    print(f"{slow_s / tokens * 1e6:8.3f}         per sample, transformers {version('transformers')}")
    for engine in ("hf", "auto"):
        stages, documents, name = ours(records, checkpoint, engine)
        for (ids, mask), document in zip(expected, documents, strict=True):
            if document.ids.tolist() != ids or document.loss_mask.tolist() != mask:
                raise SystemExit(f"{name}: ids or masks differ")
        fast_s = sum(stages.values())
        print(
            f"{fast_s / tokens * 1e6:8.3f}         ours with {name}, ids and masks identical: {slow_s / fast_s:.1f} x"
        )
        for stage, stage_s in stages.items():
            print(f"{stage_s / tokens * 1e6:8.3f}  {stage_s / fast_s:4.0%}     {stage}")


def write_large(path: Path, size: int) -> int:
    """A source of `size` bytes: real conversations, each time with a number of its own; how many there are."""
    records, number, written = chitchat(), 0, 0
    with path.open("w", encoding="utf-8") as file:
        while written < size:
            messages = records[number % len(records)]["messages"]
            first = {"role": "user", "content": f"{number} {messages[0]['content']}"}
            written += file.write(json.dumps({"messages": [first, *messages[1:]]}) + "\n")
            number += 1
    return number


# The build runs under a process of its own that is small: a process begins with the peak of the one that starts it.
MEASURE = """
import resource, subprocess, sys, time
started = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE)
wall_s, used = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
print(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9)
sys.exit(done.returncode)
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Built:
    """A whole build: by the clock, in CPU seconds of all its processes, its largest process, its rows."""

    wall_s: float
    cpu_s: float
    peak_gb: float
    rows_sha256: str


def build(source: Path, checkpoint: Path, out: Path, *, rows: int, workers: int) -> Built:
    """Build rows with the command, and remove them."""
    command = [sys.executable, "-c", MEASURE, OPENRECIPES, "data", "build", "--source", source, "--out", out]
    options = ["--row-tokens", ROW_TOKENS, "--rows", rows, "--workers", workers, "--max-rejected", 10**6, "--json"]
    done = subprocess.run([*map(str, [*command, "--tokenizer", checkpoint, *options])], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    wall_s, used_s, peak_gb = map(float, done.stdout.split())
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    shutil.rmtree(out)
    return Built(wall_s=wall_s, cpu_s=used_s, peak_gb=peak_gb, rows_sha256=manifest["rows_sha256"])


def large_source(gigabytes: float, checkpoint: Path, folder: Path) -> None:
    """Print the peak memory on a large source."""
    source = folder / "large.jsonl"
    count = write_large(source, int(gigabytes * 1e9))
    one = build(source, checkpoint, folder / "rows", rows=800, workers=1)
    source.unlink()
    print(f"source of {gigabytes:g} GB, {count:,} conversations: 800 rows in {one.wall_s:.0f} s")
    print(f"largest process: {one.peak_gb:.2f} GB")


def two_workers(rows: int, checkpoint: Path, folder: Path) -> None:
    """Print one worker beside two by the clock, whole and without the start (tokenizers loaded, source indexed)."""
    source = folder / "source.jsonl"
    write_large(source, 45_000 * rows)
    found: dict[tuple[int, int], list[Built]] = {}
    for workers in (1, 2, 1, 2):
        for wanted in (1, rows):
            one = build(source, checkpoint, folder / "rows", rows=wanted, workers=workers)
            found.setdefault((workers, wanted), []).append(one)
    if len({one.rows_sha256 for (_, wanted), some in found.items() for one in some if wanted == rows}) > 1:
        raise SystemExit("the rows depend on the number of workers")
    wall = {key: min(one.wall_s for one in some) for key, some in found.items()}
    used = {key: min(one.cpu_s for one in some) for key, some in found.items()}
    print(f"{rows} rows = {rows * ROW_TOKENS / 1e6:.0f} million tokens, rows equal:")
    for workers in (1, 2):
        print(
            f"  {workers} worker(s): {wall[workers, rows]:5.1f} s by the clock, {wall[workers, 1]:4.1f} s of it start; "
            f"{used[workers, rows]:5.1f} CPU s; largest process {found[workers, rows][0].peak_gb:.2f} GB"
        )
    after = {workers: wall[workers, rows] - wall[workers, 1] for workers in (1, 2)}
    print(f"  two beside one: {wall[1, rows] / wall[2, rows]:.2f} whole, {after[1] / after[2]:.2f} after the start")


def whole_builds(gigabytes: float, rows: int, checkpoint: Path) -> None:
    """Print what whole builds take, where there is room for their sources."""
    with tempfile.TemporaryDirectory(prefix="openrecipes-") as name:
        folder = Path(name)
        needed = max(1.5 * gigabytes * 1e9, 200_000 * rows)
        if shutil.disk_usage(folder).free < needed:
            print(f"whole builds: not run, {folder} has no room for {needed / 1e9:.0f} GB")
            return
        two_workers(rows, checkpoint, folder)
        large_source(gigabytes, checkpoint, folder)


def main() -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversations", type=int, default=4000)
    parser.add_argument("--rows", type=int, default=12_800, help="of the builds by one worker and by two")
    parser.add_argument("--large-gb", type=float, default=5.0)
    arguments = parser.parse_args()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    checkpoint = qwen3_5_vocabulary()
    if arguments.conversations:
        compare(arguments.conversations, checkpoint)
    whole_builds(arguments.large_gb, arguments.rows, checkpoint)


if __name__ == "__main__":
    main()
