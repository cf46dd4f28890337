"""The entries that come with the tool."""

from __future__ import annotations

from pathlib import Path

from openrecipes.errors import MissingToolError, UsageError
from openrecipes.recipe.load import find_recipes
from openrecipes.recipe.schema import closest

_PACKAGE = Path(__file__).resolve().parents[1]


def shipped_folder(name: str) -> Path:
    """A folder that stands at the root of a checkout and is carried into the wheel, such as `patches`.

    Raises:
        MissingToolError: this installation has no such folder.
    """
    candidates = (_PACKAGE / "_shipped" / name, _PACKAGE.parents[1] / name)
    for folder in candidates:
        if folder.is_dir():
            return folder
    raise MissingToolError(f"the folder `{name}` is not part of this installation; install openrecipes again")


def catalogue_root() -> Path:
    """The folder of the shipped recipes, laid out as `<model>/<gpu>/<entry>.yaml`."""
    return shipped_folder("recipes")


def shipped_recipes() -> dict[str, Path]:
    """The shipped recipe files by name: the path below the catalogue without `.yaml`."""
    root = catalogue_root()
    return {path.relative_to(root).with_suffix("").as_posix(): path for path in find_recipes([root])}


def recipe_path(path_or_name: str) -> Path:
    """The file that a path, a shipped entry's name or the last part of its name stands for.

    Raises:
        UsageError: there is no such file, and no shipped entry or several of that name.
    """
    path = Path(path_or_name)
    if path.exists() or path.suffix in (".yaml", ".yml"):
        return path
    shipped = shipped_recipes()
    if path_or_name in shipped:
        return shipped[path_or_name]
    matches = [name for name in shipped if name.rpartition("/")[2] == path_or_name]
    if len(matches) == 1:
        return shipped[matches[0]]
    if matches:
        raise UsageError(f"`{path_or_name}` names several entries: {', '.join(matches)}")
    known = [*shipped, *(name.rpartition("/")[2] for name in shipped)]
    meant = closest(path_or_name, known)
    hint = f"did you mean `{meant[0]}`?" if meant else "`openrecipes list` shows the shipped entries"
    raise UsageError(f"`{path_or_name}` is neither a file nor a shipped entry; {hint}")
