"""The words of a shell script: what each is made of, and where it stands."""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Iterator, Sequence
from enum import Enum

from tree_sitter import Node


class PartKind(str, Enum):
    """What a piece of a word is to the shell."""

    LITERAL = "literal"
    """Stands for itself, quotes and escapes taken away."""

    VARIABLE = "variable"
    """`$NAME` or `${NAME}`."""

    ARRAY = "array"
    """`${NAME[@]}`, `${NAME[*]}`, `$@` or `$*`: any number of words."""

    PATTERN = "pattern"
    """Unquoted text that may become file names or several words: `*`, `?`, `[...]`, `{a,b}`, a leading `~`."""

    OPAQUE = "opaque"
    """Only a shell knows: `$(...)`, backticks, arithmetic, `${NAME:-other}`, `$1`, `<(...)`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    """A piece of a word. `text` is the literal text, or else the source; `name` the variable or array."""

    kind: PartKind
    text: str
    name: str | None = None
    quoted: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Word:
    """One word. `source` is it as written; line and column count from 1 in the script, in characters.

    `start` and `end` are offsets in the script.
    """

    parts: tuple[Part, ...]
    source: str
    line: int
    column: int
    start: int
    end: int

    @property
    def value(self) -> str | None:
        """The word's text where nothing in it depends on a shell, else None."""
        return self.text if all(part.kind is PartKind.LITERAL for part in self.parts) else None

    @property
    def text(self) -> str:
        """The word without quotes and escapes; what only a shell knows stands as in the source."""
        return "".join(part.text for part in self.parts)

    @property
    def is_array(self) -> bool:
        """Whether an array is expanded in it, so that a shell makes any number of words of it."""
        return any(part.kind is PartKind.ARRAY for part in self.parts)

    @property
    def may_be_several(self) -> bool:
        """Whether a shell may make no word, or more than one, of it."""
        return self.is_array or any(part.kind is not PartKind.LITERAL and not part.quoted for part in self.parts)


class Source:
    """A script, and where an offset, counted in characters, stands in it.

    `stand_in` is what the grammar gets to see: each character that means nothing to a shell but itself, such
    as a non-ASCII letter or a carriage return, is a full stop there, a plain word character too. The
    grammar would take some of them for blanks, which no shell does, and it reads beyond a table of its own
    for others and crashes (https://github.com/tree-sitter/tree-sitter-bash/issues/337, read 2026-12-01).
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = [0, *(i + 1 for i, character in enumerate(text) if character == "\n")]
        self.stand_in = "".join(map(_seen_by_the_grammar, text)).encode("ascii")

    def text(self, node: Node) -> str:
        """The source of a node."""
        return self.between(node.start_byte, node.end_byte)

    def between(self, start: int, end: int) -> str:
        """The source from one offset to another."""
        return self._text[start:end]

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, counted from 1."""
        line = bisect.bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1

    def word(self, parts: Sequence[Part], start: int, end: int) -> Word:
        """A word of these parts that stands between two offsets."""
        line, column = self.place(start)
        return Word(parts=tuple(parts), source=self.between(start, end), line=line, column=column, start=start, end=end)

    def empty_word(self, offset: int) -> Word:
        """The empty text, as in `NAME=`."""
        return self.word((), offset, offset)


def _seen_by_the_grammar(character: str) -> str:
    # A NUL stays: no shell takes one, and the grammar says so.
    return character if character.isascii() and (character.isprintable() or character in "\t\n\0") else "."


def read_word(node: Node, source: Source) -> Word:
    """The word that a node of the syntax tree stands for."""
    children = node.children if node.type == "concatenation" else [node]
    parts: list[Part] = []
    for i, child in enumerate(children):
        # `$"text"` is "text", translated where a shell has a translation.
        if child.type == "$" and i + 1 < len(children) and children[i + 1].type == "string":
            continue
        parts += _parts(child, source, first=i == 0)
    return source.word(parts, node.start_byte, node.end_byte)


def join_words(words: Sequence[Word], source: Source) -> tuple[Word, ...]:
    """Join words that touch, or that only an escaped line end parts: the grammar keeps those apart."""
    joined: list[Word] = []
    for word in words:
        if joined and not source.between(joined[-1].end, word.start).replace("\\\n", ""):
            last = joined.pop()
            parts = last.parts[:-1] if _is_translation(last, word) else last.parts
            word = source.word((*parts, *word.parts), last.start, word.end)
        joined.append(word)
    return tuple(joined)


def split_first(word: Word, separator: str) -> tuple[str, Word | None]:
    """The literal text before the first separator, and the word after it; (text, None) where there is none."""
    for i, part in enumerate(word.parts):
        if part.kind is not PartKind.LITERAL:
            break
        before, found, after = part.text.partition(separator)
        if found:
            head = "".join(earlier.text for earlier in word.parts[:i]) + before
            rest = (dataclasses.replace(part, text=after), *word.parts[i + 1 :])
            _, _, source = word.source.partition(separator)
            return head, dataclasses.replace(word, parts=rest, source=source)
    return word.text, None


def _is_translation(dollar: Word, word: Word) -> bool:
    return dollar.source.endswith("$") and dollar.end == word.start and word.source.startswith('"')


def _parts(node: Node, source: Source, *, first: bool) -> Iterator[Part]:
    text = source.text(node)
    match node.type:
        case "word" | "number" | "variable_name" | "$":
            yield _bare(text, first=first)
        case "raw_string":
            yield _literal(text[1:-1])
        case "ansi_c_string" if "\\" not in text:
            yield _literal(text[2:-1])
        case "string":
            yield from _quoted(node, source)
        case "simple_expansion" | "expansion":
            yield _expansion(node, source, quoted=False)
        case _:
            yield Part(kind=PartKind.OPAQUE, text=text)


def _bare(text: str, *, first: bool) -> Part:
    """Unquoted text: escapes are taken away, and an unescaped pattern character makes it a pattern."""
    cooked: list[str] = []
    pattern = first and text.startswith("~")
    characters = iter(text)
    for character in characters:
        if character == "\\":
            escaped = next(characters, "")
            cooked.append("" if escaped == "\n" else escaped)
        else:
            pattern = pattern or character in "*?[{"
            cooked.append(character)
    return Part(kind=PartKind.PATTERN if pattern else PartKind.LITERAL, text="".join(cooked))


def _quoted(node: Node, source: Source) -> Iterator[Part]:
    """The parts of `"..."`. The text is what stands between expansions: the tree leaves blanks out."""
    at = node.start_byte + 1
    end = node.end_byte - 1
    for child in node.named_children:
        if child.type == "string_content":
            continue
        blanks = len(child.text or b"") - len((child.text or b"").lstrip())
        start = child.start_byte + blanks
        yield _literal(_unescape(source.between(at, start)))
        if child.type in ("simple_expansion", "expansion"):
            yield _expansion(child, source, quoted=True)
        else:
            yield Part(kind=PartKind.OPAQUE, text=source.between(start, child.end_byte), quoted=True)
        at = child.end_byte
    yield _literal(_unescape(source.between(at, end)))


def _expansion(node: Node, source: Source, *, quoted: bool) -> Part:
    text = source.text(node).lstrip()
    plain = text[2:-1] if text.startswith("${") and text.endswith("}") else text[1:]
    name, bracket, index = plain.partition("[")
    if plain in ("@", "*") or (bracket and name.isidentifier() and index in ("@]", "*]")):
        return Part(kind=PartKind.ARRAY, text=text, name=name if bracket else None, quoted=quoted)
    if plain.isidentifier():
        return Part(kind=PartKind.VARIABLE, text=text, name=plain, quoted=quoted)
    return Part(kind=PartKind.OPAQUE, text=text, quoted=quoted)


def _unescape(text: str) -> str:
    """Inside double quotes a backslash escapes only a dollar, a backtick, a quote, itself and a line end."""
    cooked: list[str] = []
    characters = iter(text)
    for character in characters:
        if character == "\\":
            escaped = next(characters, "")
            cooked.append("" if escaped == "\n" else escaped if escaped in '$`"\\' else f"\\{escaped}")
        else:
            cooked.append(character)
    return "".join(cooked)


def _literal(text: str) -> Part:
    return Part(kind=PartKind.LITERAL, text=text, quoted=True)
