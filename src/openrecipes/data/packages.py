"""Installed packages as sources of files: where a file is, which version and licence it came with."""

from __future__ import annotations

import dataclasses
import hashlib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from openrecipes.errors import MissingToolError, UsageError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Package:
    """An installed distribution; `license` is what its own metadata states, None where it states none."""

    name: str
    version: str
    license: str | None
    files: tuple[str, ...]
    _distribution: Distribution = dataclasses.field(repr=False, compare=False)

    def path(self, file: str) -> Path:
        """Where `file`, one of `files`, lies.

        Raises:
            UsageError: the package has no such file.
        """
        if file not in self.files:
            raise UsageError(f"package {self.name} {self.version} has no file `{file}`")
        return Path(str(self._distribution.locate_file(file)))

    def require_license(self, stated: str) -> None:
        """Compare the licence a workload states with the package's own.

        Raises:
            UsageError: they differ.
        """
        if stated != self.license:
            raise UsageError(
                f"the licence of {self.name} {self.version} is stated as `{stated}`, its metadata says "
                f"`{self.license}`; read the package's licence and state that one"
            )


def find_package(name: str) -> Package:
    """Look up an installed distribution without importing any of its code.

    Raises:
        MissingToolError: it is not installed.
    """
    try:
        found = distribution(name)
    except (PackageNotFoundError, ValueError):  # ValueError: an empty name
        raise MissingToolError(
            f"package `{name}` is not installed; install it with: pip install {name} "
            "(pip install 'openrecipes[data]' brings all that the examples need)"
        ) from None
    licenses = (found.metadata.get_all("License-Expression") or []) + (found.metadata.get_all("License") or [])
    return Package(
        name=found.metadata["Name"],
        version=found.version,
        license=licenses[0].splitlines()[0].strip() if licenses else None,
        files=tuple(sorted(file.as_posix() for file in found.files or [] if "__pycache__" not in file.parts)),
        _distribution=found,
    )


def sha256_of_file(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
