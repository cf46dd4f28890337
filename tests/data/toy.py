"""A build with a toy encoder (bytes as ids), so that a test costs no tokenizer; also run as a process to be killed."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import signal
import sys
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np

from openrecipes.data import builder
from openrecipes.data.conversation import Rejection, RejectionKind
from openrecipes.data.encode import Document, EncodeOptions
from openrecipes.data.options import BuildOptions
from openrecipes.errors import OpenRecipesError, UsageError

EOS = 256


class ToyEncoder:
    """A message is its bytes; the assistant's are targets. `slow` seconds a call leave time to kill."""

    vocab_size = 257

    def __init__(self, options: EncodeOptions) -> None:
        self._slow = float(os.environ.get("TOY_SLOW", "0"))
        if os.environ.get("TOY_FAULT") == "start" and multiprocessing.parent_process():
            raise UsageError("the worker found no tokenizer")

    def encode(self, conversations):
        time.sleep(self._slow)
        if os.environ.get("TOY_FAULT") == "crash" and multiprocessing.parent_process():
            os.kill(os.getpid(), signal.SIGKILL)
        return [self._encode(conversation) for conversation in conversations]

    def _encode(self, conversation):
        ids, mask = [], []
        for message in conversation.messages:
            data = message.content.encode()
            ids += data
            mask += [int(message.role == "assistant")] * len(data)
        if not any(mask):
            return Rejection(RejectionKind.NO_TARGETS, "nothing to learn")
        return Document(ids=np.array(ids, np.int32), loss_mask=np.array(mask, np.uint8))

    def describe(self):
        return {"tokenizer": "toy", "vocab_size": self.vocab_size, "engine": {"name": "toy"}}

    def special(self, name):
        if name != "<|endoftext|>":
            raise UsageError(f"the tokenizer has no special token `{name}`")
        return EOS

    def decode(self, ids):
        return bytes(id for id in ids if id < EOS).decode("utf-8", errors="replace")


class Quiet:
    def phase(self, text: str) -> None:
        pass

    def rows(self, done: int, total: int, row_tokens: int) -> None:
        pass


def write_source(path: Path, conversations: int) -> None:
    """Conversations of 4 to about 300 bytes; every 50th has no answer, every 70th line is no JSON."""
    with path.open("w", encoding="utf-8") as file:
        for n in range(conversations):
            answer = "" if n % 50 == 7 else f"a{n} " * (1 + n * n % 60)
            messages = [{"role": "user", "content": f"q{n}"}]
            if answer:
                messages.append({"role": "assistant", "content": answer})
            file.write(json.dumps({"messages": messages}) + "\n" if n % 70 != 11 else "not json\n")


def options(source: Path | str, out: Path, **changes) -> BuildOptions:
    given = {"row_tokens": 128, "rows": 300, "seed": 42, "max_rejected": 1000, "block_size": 16, "workers": 1}
    return BuildOptions(source=str(source), encode=EncodeOptions(tokenizer="toy"), out=out, **{**given, **changes})


def build(source: Path | str, out: Path, **changes):
    with patch.object(builder, "ConversationEncoder", ToyEncoder):  # spawned workers get it by its name
        return builder.build(options(source, out, **changes), Quiet())


def _die_at(event: int) -> None:
    """Kill this process at the so manieth thing it asks of the system: opening, writing anew, renaming, removing."""
    seen = 0

    def hook(name: str, arguments: tuple) -> None:
        nonlocal seen
        if name in ("open", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "shutil.rmtree", "os.listdir"):
            seen += 1
            if seen == event:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def _die_in_file(byte: int) -> None:
    """Have the kernel kill this process in the midst of a write, where a file would grow beyond so many bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (byte, byte))


def _die_at_each(source: Path, out: Path) -> None:
    """A fork a line, so that the imports are paid once; prints each one's exit code."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            kind, number = line.split()
            _die_at(int(number)) if kind == "event" else _die_in_file(int(number))
            build(source, out)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    sys.exit(0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("out", type=Path)
    parser.add_argument("--workers", default="1")
    parser.add_argument(
        "--die-at-each", action="store_true", help="for each line on stdin, `event N` or `byte N`, build and die there"
    )
    parser.add_argument("--file-bytes", type=int)
    given = parser.parse_args()
    if given.die_at_each:
        _die_at_each(given.source, given.out)
    if given.file_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (given.file_bytes, given.file_bytes))
    try:
        print(build(given.source, given.out, workers=int(given.workers))["rows_sha256"])
    except OpenRecipesError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
