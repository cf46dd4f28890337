"""A dataset on the Hugging Face hub, at one commit: `hf:owner/name@COMMIT`."""

from __future__ import annotations

import re
from pathlib import Path

from openrecipes.data.sources.files import LINES, TABLES
from openrecipes.errors import MissingToolError, RunError, UsageError

_REFERENCE = re.compile(r"hf:(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>.*))?")
_COMMIT = re.compile(r"[0-9a-f]{40}")


def parse_reference(text: str) -> tuple[str, str]:
    """Name and commit of `hf:owner/name@COMMIT`.

    Raises:
        UsageError: the text is of another form, or names a branch or tag, which may move.
    """
    found = _REFERENCE.fullmatch(text)
    if not found:
        raise UsageError(f"source `{text}` is not of the form hf:owner/name@COMMIT")
    name, revision = found["name"], found["revision"] or ""
    if not _COMMIT.fullmatch(revision):
        has = f"the revision `{revision}`" if revision else "no revision"
        raise UsageError(
            f"source `{text}` has {has}, expected a commit of 40 hexadecimal digits, since branches and tags move; "
            f"the commit is listed at https://huggingface.co/datasets/{name}/commits/main"
        )
    return name, revision


def download(name: str, revision: str, pattern: str | None) -> Path:
    """The folder of the dataset's data files, fetched into the hub's own cache where they are not yet there.

    Raises:
        MissingToolError: huggingface_hub is not installed.
        RunError: the hub does not answer, or has no such dataset or commit.
    """
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    except ImportError:
        raise MissingToolError(
            "package `huggingface_hub` is not installed; install it with `pip install openrecipes[data]`"
        ) from None
    patterns = pattern or [f"*{suffix}" for suffix in LINES + TABLES]
    try:
        return Path(snapshot_download(name, repo_type="dataset", revision=revision, allow_patterns=patterns))
    except (HfHubHTTPError, LocalEntryNotFoundError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise RunError(f"cannot fetch dataset {name} at {revision} from the hub: {reason}") from error
