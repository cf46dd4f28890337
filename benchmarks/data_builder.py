"""The data builder beside the usual path: render, tokenize twice and mask, one conversation at a time.

    python benchmarks/data_builder.py [--conversations 4000] [--large-gb 5]

    per sample   transformers' apply_chat_template, the tokenizer with offsets, apply_chat_template(tokenize=True)
                 to compare, a mask by characters: what slime does at run time (slime/utils/mask_utils.py)
    ours         ConversationEncoder on the same conversations, in one process and one thread

Both are timed in CPU seconds after their tokenizers are loaded, and give the same ids and masks or the benchmark stops.
Conversations are real (chitchat-dataset) and no text comes twice; tokenizer and template come from registry packages.
Then whole builds: one worker beside two, by the clock, and the largest process on a generated source.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
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


def ours(records: list[dict], checkpoint: Path) -> tuple[dict[str, float], list[Document], str]:
    """Our path, stage by stage: CPU seconds of each, the documents, and the engine."""
    encoder = ConversationEncoder(EncodeOptions(tokenizer=str(checkpoint)))
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
    engine = encoder.describe()["engine"]
    return stages, documents, f"{engine['name']} {engine['version']}"


def compare(count: int, checkpoint: Path) -> None:
    """Print the CPU seconds of both paths on the same conversations."""
    records = chitchat(count)
    slow_s, expected = per_sample(records, checkpoint)
    stages, documents, engine = ours(records, checkpoint)
    for (ids, mask), document in zip(expected, documents, strict=True):
        if document.ids.tolist() != ids or document.loss_mask.tolist() != mask:
            raise SystemExit("ids or masks differ")
    tokens = sum(len(document.ids) for document in documents)
    fast_s = sum(stages.values())
    print(f"{len(records)} conversations, {tokens:,} tokens; ids and masks identical; engine {engine}")
    print(f"per sample (transformers {version('transformers')}): {slow_s / tokens * 1e6:7.2f} CPU s per million tokens")
    print(f"ours, to Parquet on disk:            {fast_s / tokens * 1e6:7.2f} CPU s per million tokens")
    print(f"ratio: {slow_s / fast_s:.1f}")
    for name, stage_s in stages.items():
        print(f"  {stage_s / tokens * 1e6:6.3f}  {stage_s / fast_s:4.0%}  {name}")


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


def build(source: Path, checkpoint: Path, out: Path, *, rows: int, workers: int) -> tuple[float, float, str]:
    """A whole build as a process of its own: wall seconds, GB of its largest process so far, rows_sha256."""
    options: list[Any] = ["--source", source, "--tokenizer", checkpoint, "--row-tokens", ROW_TOKENS, "--rows", rows]
    command = [
        OPENRECIPES,
        "data",
        "build",
        *options,
        "--workers",
        workers,
        "--max-rejected",
        10**6,
        "--out",
        out,
        "--json",
    ]
    started = time.perf_counter()
    done = subprocess.run([*map(str, command)], check=True, capture_output=True, text=True)
    wall_s = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e9
    return wall_s, peak, json.loads(done.stdout)["manifest"]["rows_sha256"]


def whole_builds(gigabytes: float, checkpoint: Path) -> None:
    """Print the peak memory on a large source, and one worker beside two."""
    with tempfile.TemporaryDirectory(prefix="openrecipes-") as name:
        folder = Path(name)
        if shutil.disk_usage(folder).free < 1.5 * gigabytes * 1e9:
            print(f"whole builds: not run, {folder} has no room for a source of {gigabytes:g} GB")
            return
        source = folder / "large.jsonl"
        count = write_large(source, int(gigabytes * 1e9))
        rows = 800
        wall_s, peak, _ = build(source, checkpoint, folder / "one", rows=rows, workers=1)
        print(f"source of {gigabytes:g} GB, {count:,} conversations: {rows} rows in {wall_s:.0f} s")
        print(f"largest process: {peak:.2f} GB")
        small = folder / "small.jsonl"
        write_large(small, int(2e8))
        times: dict[int, list[float]] = {1: [], 2: []}
        hashes = set()
        for workers in (1, 2, 1, 2):
            wall_s, _, found = build(small, checkpoint, folder / "rows", rows=3000, workers=workers)
            times[workers].append(wall_s)
            hashes.add(found)
            shutil.rmtree(folder / "rows")
        if len(hashes) > 1:
            raise SystemExit("the rows depend on the number of workers")
        one, two = min(times[1]), min(times[2])
        print(f"3000 rows from 0.2 GB: 1 worker {one:.1f} s, 2 workers {two:.1f} s, ratio {one / two:.2f}")


def main() -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversations", type=int, default=4000)
    parser.add_argument("--large-gb", type=float, default=5.0)
    arguments = parser.parse_args()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    checkpoint = qwen3_5_vocabulary()
    compare(arguments.conversations, checkpoint)
    whole_builds(arguments.large_gb, checkpoint)


if __name__ == "__main__":
    main()
