"""YAML text to a tree of nodes that know their place; strict, and bounded before anything is built.

The tree is built from libyaml's event stream instead of PyYAML's own composer, since the stream can
be stopped at the first event beyond a limit, and since the composer keeps the last of two equal keys.
Scalars stay the characters that were written; what kind of value they are is for the fields to say
(`openrecipes.recipe.scalars`).
"""

from __future__ import annotations

import dataclasses
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import yaml

from openrecipes.errors import ContentError, Finding, Severity, UsageError
from openrecipes.recipe.checkable import Place

MAX_BYTES = 2**20
MAX_DEPTH = 16
MAX_EXPANDED = 2 * MAX_BYTES
_NODE_COST = 64
"""Characters a node counts for beside its own text, so that many empty nodes reach the limit too."""


@dataclasses.dataclass(frozen=True)
class ScalarNode:
    """A scalar as written; `plain` is False where it was quoted or a block."""

    text: str
    plain: bool
    place: Place
    size: int


@dataclasses.dataclass(frozen=True)
class SequenceNode:
    """A list; `size` is what it expands to in characters, aliases included."""

    items: tuple[Node, ...]
    place: Place
    size: int


@dataclasses.dataclass(frozen=True)
class MappingNode:
    """A mapping in the order of the file; a repeated key keeps its first value."""

    entries: tuple[tuple[ScalarNode, Node], ...]
    place: Place
    size: int


Node = ScalarNode | SequenceNode | MappingNode


@dataclasses.dataclass(frozen=True)
class Document:
    """One YAML file: its mapping, and what is wrong with it that does not keep it from being read on."""

    path: Path
    root: MappingNode
    findings: tuple[Finding, ...]


def read_document(path: Path) -> Document:
    """Read a YAML file of one mapping.

    Raises:
        UsageError: `path` is missing, a directory, or cannot be opened.
        ContentError: the file is too large, not UTF-8, not YAML, not one mapping, or expands too far.
    """
    return parse_document(_decode(_read(path), path), path)


def parse_document(text: str, path: Path) -> Document:
    """Parse YAML text of one mapping; `path` only names the place of a finding.

    Raises:
        ContentError: as `read_document` does.
    """
    builder = _TreeBuilder(text, path)
    try:
        return builder.document()
    except yaml.reader.ReaderError as error:
        before = text.encode()[: error.position].decode(errors="ignore")
        place = Place(line=before.count("\n") + 1, column=len(before) - before.rfind("\n"))
        builder.stop("D103", place, f"unacceptable character: {error.reason}", "take the character out")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = ", ".join(filter(None, (error.context, error.problem)))
        builder.stop("D103", _place(mark), what, "mend the YAML here; a value with `: ` or ` #` in it needs quotes")


def _read(path: Path) -> bytes:
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise UsageError(f"{path}: is a directory; expected a YAML file")
        if not stat.S_ISREG(mode):
            raise UsageError(f"{path}: is not a regular file; expected a YAML file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{path}: cannot be read ({reason}); expected a YAML file") from None
    if len(data) > MAX_BYTES:
        _refuse("D101", path, Place(), f"larger than {MAX_BYTES:,} bytes", "write fields only; logs are evidence")
    return data


def _decode(data: bytes, path: Path) -> str:
    if b"\0" in data:
        _refuse("D102", path, Place(), "a binary file", "expected YAML text")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        place = Place(line=data.count(b"\n", 0, error.start) + 1)
        message = f"byte {error.start} (0x{data[error.start]:02x}) is not UTF-8"
        _refuse("D102", path, place, message, "save the file as UTF-8")
    if text.startswith("\ufeff"):
        _refuse("D102", path, Place(line=1, column=1), "starts with a byte order mark", "save as UTF-8 without it")
    return text


def _refuse(id: str, path: Path, place: Place, message: str, remedy: str) -> NoReturn:
    raise ContentError([_finding(id, path, place, message, remedy)])


def _finding(id: str, path: Path, place: Place, message: str, remedy: str, field: str | None = None) -> Finding:
    return Finding(
        id=id,
        severity=Severity.ERROR,
        message=message,
        remedy=remedy,
        path=path,
        line=place.line,
        column=place.column,
        field=field or None,
    )


def _place(mark: yaml.Mark | None) -> Place:
    return Place() if mark is None else Place(line=mark.line + 1, column=mark.column + 1)


class _TreeBuilder:
    """Consumes the event stream of one file."""

    def __init__(self, text: str, path: Path) -> None:
        self.path = path
        self.findings: list[Finding] = []
        self.anchors: dict[str, Node] = {}
        self.events: Iterator[yaml.Event] = iter(yaml.parse(text, Loader=yaml.CSafeLoader))

    def stop(self, id: str, place: Place, message: str, remedy: str) -> NoReturn:
        """Refuse the file: this finding alone is reported, since nothing after it can be trusted."""
        _refuse(id, self.path, place, message, remedy)

    def report(self, id: str, place: Place, message: str, remedy: str, field: str) -> None:
        """Keep a finding and read on."""
        self.findings.append(_finding(id, self.path, place, message, remedy, field))

    def document(self) -> Document:
        """The one document of the stream."""
        next(self.events)  # stream start
        if isinstance(next(self.events), yaml.StreamEndEvent):
            self.stop("D104", Place(), "the file holds no YAML", "expected a mapping of fields")
        root = self.node(next(self.events), depth=1, field="")
        next(self.events)  # document end
        if not isinstance(root, MappingNode):
            kind = "a list" if isinstance(root, SequenceNode) else "a single value"
            self.stop("D104", root.place, f"the file holds {kind}", "expected a mapping of fields")
        after = next(self.events)
        if not isinstance(after, yaml.StreamEndEvent):
            self.stop("D104", _place(after.start_mark), "a second document starts here", "one file is one recipe")
        return Document(self.path, root, tuple(self.findings))

    def node(self, event: yaml.Event, depth: int, field: str) -> Node:
        """The node that starts with `event`; `field` is its dotted name."""
        place = _place(event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:
                self.stop("D107", place, f"the alias `*{event.anchor}` stands for nothing yet", "write the value out")
            return self.anchors[event.anchor]
        if depth > MAX_DEPTH:
            self.stop("D106", place, f"nested more than {MAX_DEPTH} deep", "no recipe field is that deep")
        if event.tag is not None:  # type: ignore[attr-defined]
            tag = event.tag  # type: ignore[attr-defined]
            self.report("D107", place, f"the tag `{tag}`", "take it out: the field decides the kind of value", field)
        if isinstance(event, yaml.ScalarEvent):
            node = ScalarNode(event.value, event.implicit[0], place, len(event.value) + _NODE_COST)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self.sequence(place, depth, field)
        else:
            node = self.mapping(place, depth, field)
        if event.anchor is not None:  # type: ignore[attr-defined]
            self.anchors[event.anchor] = node  # type: ignore[attr-defined]
        return node

    def sequence(self, place: Place, depth: int, field: str) -> SequenceNode:
        items: list[Node] = []
        size = _NODE_COST
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            items.append(self.node(event, depth + 1, f"{field}[{len(items)}]"))
            size = self.grown(size, items[-1], _place(event.start_mark))
        return SequenceNode(tuple(items), place, size)

    def mapping(self, place: Place, depth: int, field: str) -> MappingNode:
        entries: dict[str, tuple[ScalarNode, Node]] = {}
        size = _NODE_COST
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            at = _place(event.start_mark)
            key = self.node(event, depth + 1, field)
            name = f"{field}.{key.text}".removeprefix(".") if isinstance(key, ScalarNode) else field
            value = self.node(next(self.events), depth + 1, name)
            size = self.grown(self.grown(size, key, at), value, at)
            if not isinstance(key, ScalarNode):
                self.report("D107", at, "a list or mapping as key", "expected the name of a field", field)
            elif key.plain and key.text == "<<":
                self.report("D107", at, "the merge key `<<`", "write the merged fields out", field)
            elif key.text in entries:
                first = entries[key.text][0].place.line
                self.report("D105", at, f"the key already stands in line {first}", "take one of them out", name)
            else:
                entries[key.text] = (dataclasses.replace(key, place=at), value)
        return MappingNode(tuple(entries.values()), place, size)

    def grown(self, size: int, child: Node, place: Place) -> int:
        """The size of a collection with one more child, unless that is too large."""
        if size + child.size > MAX_EXPANDED:
            self.stop(
                "D106", place, f"expands to more than {MAX_EXPANDED:,} characters", "write values out, not aliases"
            )
        return size + child.size
