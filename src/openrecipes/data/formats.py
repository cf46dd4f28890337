"""The layouts rows can be written in, by name; each is a module of its own, loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Protocol

from openrecipes.data.packing import Row
from openrecipes.errors import MissingToolError, UsageError

_FORMATS = {
    "parquet": ("openrecipes.data.table", "ParquetRows"),
    "megatron": ("openrecipes.data.megatron", "MegatronRows"),
}
FORMATS = tuple(_FORMATS)


class RowWriter(Protocol):
    """Writes rows into files of its own in a folder; they are complete after `close`."""

    def write(self, row: Row) -> None:
        """Append a row."""
        ...

    def close(self) -> None:
        """Write what waits and make the files durable."""
        ...

    def abandon(self) -> None:
        """Let go of the files as they are, after `close` or without it; the folder is thrown away then."""
        ...


def open_writer(name: str, folder: Path, *, row_tokens: int, source_name: str) -> RowWriter:
    """A writer of the format `name` into `folder`."""
    module, writer = _FORMATS[require_format(name)]
    return getattr(_load(module), writer)(folder, row_tokens=row_tokens, source_name=source_name)


def reader(name: str) -> Callable[[Path, int], Iterator[Row]]:
    """The function that reads a folder's rows of `row_tokens` tokens in the format `name`."""
    return _load(_FORMATS[require_format(name)][0]).read_rows


def require_format(name: str) -> str:
    """`name`, if it is a format.

    Raises:
        UsageError: it is none.
    """
    if name not in _FORMATS:
        raise UsageError(f"format `{name}` is not known, expected one of {', '.join(FORMATS)}")
    return name


def _load(module: str):
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingToolError(
            f"package `{error.name}` is not installed; install it with `pip install openrecipes[data]`"
        ) from error
