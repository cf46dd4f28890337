"""The files that an entry's `patches` name, looked for without leaving the folders they may stand in."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from openrecipes.errors import MissingToolError
from openrecipes.recipe.catalogue import shipped_folder


def patch_problem(path: str, entry: Path) -> str | None:
    """Why a patch cannot be found, None where it is there.

    `path` is relative to the repository root: the nearest folder above `entry` that holds it, or else the
    root of the files that come with this tool.
    """
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\\" in path or ":" in path or not path.isprintable():
        return f"`{path:.80}` is not a path below the repository root"
    if any(_is_file_below(folder, pure) for folder in entry.absolute().parents) or _is_shipped(pure):
        return None
    return f"`{path:.80}` is in no folder above the entry and does not come with this tool"


def _is_shipped(path: PurePosixPath) -> bool:
    try:
        folder = shipped_folder("patches")
    except MissingToolError:
        return False
    return _is_file_below(folder.parent, path) and path.parts[:1] == (folder.name,)


def _is_file_below(folder: Path, path: PurePosixPath) -> bool:
    """Whether the file is there and, links followed, still below the folder."""
    try:
        found = folder / path
        return found.is_file() and found.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError):
        return False
