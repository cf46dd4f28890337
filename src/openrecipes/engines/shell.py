"""A shell script, read and never run: its statements in order, each word with its place and its parts.

The grammar is tree-sitter-bash. This module knows syntax only: it says that a word holds `$HF_CKPT`, not
what the variable is; `openrecipes.engines.values` settles what the script itself decides.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from openrecipes.engines.words import Source, Word, join_words, read_word, split_first

# Error recovery of the grammar takes more than quadratic time: 64 KiB of `a|` takes 40 s, 16 KiB about 1 s.
MAX_SCRIPT_CHARACTERS = 16 * 1024
_MOST_PROBLEMS = 20

_LANGUAGE = Language(tree_sitter_bash.language())
_WORDS = {
    "word",
    "number",
    "string",
    "raw_string",
    "ansi_c_string",
    "translated_string",
    "concatenation",
    "simple_expansion",
    "expansion",
    "command_substitution",
    "arithmetic_expansion",
    "process_substitution",
    "brace_expression",
    "variable_name",
    "$",
}
# Statements below these may run never, often, or in a shell of their own, so that what they assign is not settled.
_UNCERTAIN = {
    "if_statement",
    "while_statement",
    "for_statement",
    "c_style_for_statement",
    "case_statement",
    "function_definition",
    "subshell",
    "pipeline",
}
# A variable name directly in one of these is assigned, exported or unset, not read.
_NAME_VARIABLES = {"variable_assignment", "declaration_command", "unset_command", "for_statement"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Problem:
    """Something in the script that is not shell syntax; line and column count from 1, in the script."""

    message: str
    line: int
    column: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Assignment:
    """`NAME=value`, `export NAME`, `NAME=(a b)` or `unset NAME`.

    `value` is None where the statement gives none (`export NAME`, `unset NAME`) or gives an array, whose
    `elements` are then set. `exported` is None where the statement leaves it as it was. `certain` is
    False where the statement may not take effect: under a condition, in a loop, a function or a subshell.
    """

    name: str
    value: Word | None = None
    elements: tuple[Word, ...] | None = None
    exported: bool | None = None
    unset: bool = False
    append: bool = False
    certain: bool = True
    line: int
    column: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Command:
    """A simple command: its words without redirections, and the assignments written in front of it."""

    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...] = ()
    line: int
    column: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Script:
    """The statements of a script in the order of the text, and the variables that it reads anywhere."""

    statements: tuple[Assignment | Command, ...] = ()
    variables_read: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def commands(self) -> tuple[Command, ...]:
        """The commands, in the order of the text."""
        return tuple(statement for statement in self.statements if isinstance(statement, Command))


def parse_script(text: str) -> Script:
    """Parse a shell script; what is not shell syntax becomes a problem, never an exception."""
    if len(text) > MAX_SCRIPT_CHARACTERS:
        message = f"the script has {len(text)} characters, expected at most {MAX_SCRIPT_CHARACTERS}"
        return Script(problems=(Problem(message=message, line=1, column=1),))
    source = Source(text)
    root = Parser(_LANGUAGE).parse(source.stand_in).root_node
    statements = sorted(_statements(root, source), key=lambda statement: (statement.line, statement.column))
    return Script(
        statements=tuple(statements),
        variables_read=tuple(dict.fromkeys(_variables_read(root, source))),
        problems=tuple(_problems(root, source)),
    )


def _statements(root: Node, source: Source) -> Iterator[Assignment | Command]:
    """Every statement below `root`. The walk keeps its own stack, so that deep nesting cannot exhaust Python's."""
    waiting: list[tuple[Node, bool, tuple[Node, ...]]] = [(root, True, ())]
    while waiting:
        node, certain, more_words = waiting.pop()
        if node.type == "command":
            yield _command(node, more_words, certain, source)
            continue
        if node.type == "for_statement" and (variable := node.child_by_field_name("variable")) is not None:
            yield _named(variable, source, certain=False, exported=None)
        if node.type == "variable_assignment":
            yield _assignment(node, source, certain=certain)
            continue
        if node.type == "declaration_command":
            yield from _declaration(node, source, certain)
            continue
        if node.type == "unset_command":
            names = (child for child in node.named_children if child.type == "variable_name")
            yield from (_named(name, source, certain=certain, unset=True, exported=False) for name in names)
            continue
        if node.type in _WORDS or node.type == "test_command":
            continue
        certain = certain and node.type not in _UNCERTAIN
        words = tuple(_words_after_redirects(node)) if node.type == "redirected_statement" else ()
        alternative = False
        for child in node.children:
            alternative = alternative or child.type == "||"
            waiting.append((child, certain and not alternative, words if child.type == "command" else ()))


def _words_after_redirects(node: Node) -> Iterator[Node]:
    """In `cmd > log --flag` the grammar keeps `--flag` with the redirection; the shell gives it to `cmd`."""
    for redirect in node.named_children:
        if redirect.type == "file_redirect":
            yield from redirect.children_by_field_name("destination")[1:]
        elif redirect.type == "heredoc_redirect":
            yield from redirect.children_by_field_name("argument")


def _command(node: Node, more_words: Iterable[Node], certain: bool, source: Source) -> Command:
    parts: list[Node] = []
    assignments = []
    for child in node.children:
        if child.type == "variable_assignment":
            assignments.append(_assignment(child, source, certain=certain, exported=True))
        elif child.type == "command_name":
            parts += child.children or [child]
        elif child.type == "file_redirect":
            parts += child.children_by_field_name("destination")[1:]
        elif child.type in _WORDS:
            parts.append(child)
    nodes = [node for node in (*parts, *more_words) if not node.is_missing]
    words = join_words([read_word(part, source) for part in nodes], source)
    line, column = source.place(node.start_byte)
    return Command(words=words, assignments=tuple(assignments), line=line, column=column)


def _assignment(node: Node, source: Source, *, certain: bool, exported: bool | None = None) -> Assignment:
    line, column = source.place(node.start_byte)
    name = node.child_by_field_name("name")
    value = node.child_by_field_name("value")
    word = elements = None
    if value is not None and value.type == "array":
        elements = join_words([read_word(child, source) for child in value.children if child.type in _WORDS], source)
    elif value is not None:
        word = read_word(value, source)
    else:
        word = source.empty_word(node.end_byte)
    one_element = name is not None and name.type == "subscript"
    if one_element and name is not None:
        name = name.child_by_field_name("name")
    return Assignment(
        name=source.text(name) if name is not None else "",
        value=word,
        elements=elements,
        exported=exported,
        append=one_element or any(child.type == "+=" for child in node.children),
        certain=certain,
        line=line,
        column=column,
    )


def _declaration(node: Node, source: Source, certain: bool) -> Iterator[Assignment]:
    """`export A=1 B`, `declare -x A=1`, `readonly A`: one assignment a name."""
    keyword, *arguments = node.children
    options = "".join(source.text(child) for child in arguments if source.text(child).startswith(("-", "+")))
    exported = True if keyword.type == "export" or "x" in options else None
    if keyword.type == "export" and "n" in options:
        exported = False
    for child in arguments:
        if child.type == "variable_assignment":
            yield _assignment(child, source, certain=certain, exported=exported)
        elif child.type == "variable_name":
            yield _named(child, source, certain=certain, exported=exported)
        elif child.type in ("string", "raw_string", "concatenation"):
            word = read_word(child, source)
            name, value = split_first(word, "=")
            if value is not None and name.isidentifier():
                yield Assignment(
                    name=name, value=value, exported=exported, certain=certain, line=word.line, column=word.column
                )


def _named(node: Node, source: Source, *, certain: bool, exported: bool | None, unset: bool = False) -> Assignment:
    line, column = source.place(node.start_byte)
    return Assignment(name=source.text(node), exported=exported, unset=unset, certain=certain, line=line, column=column)


def _variables_read(root: Node, source: Source) -> Iterator[str]:
    """The names of all variables that are expanded, also in places that only a shell could evaluate."""
    # Each node waits with whether a name directly in it is assigned or listed, not read.
    waiting = [(root, False)]
    while waiting:
        node, only_named = waiting.pop()
        if node.type == "variable_name" and not only_named:
            name = source.text(node)
            if name.isidentifier():
                yield name
        names = node.type in _NAME_VARIABLES or (only_named and node.type == "subscript")
        waiting += [(child, names) for child in reversed(node.children)]


def _problems(root: Node, source: Source) -> Iterator[Problem]:
    if not root.has_error:
        return
    found = 0
    end = -1
    for node in _walk(root):
        if not (node.is_missing or (node.is_error and node.start_byte >= end)):
            continue
        found += 1
        end = node.end_byte
        blanks = len(node.text or b"") - len((node.text or b"").lstrip())
        line, column = source.place(node.start_byte + blanks)
        if found > _MOST_PROBLEMS:
            yield Problem(message=f"more than {_MOST_PROBLEMS} places are not shell syntax", line=line, column=column)
            return
        text = " ".join(source.text(node).split())
        shown = f"{text[:40]}..." if len(text) > 40 else text
        message = f"`{node.type}` is missing" if node.is_missing else f"not shell syntax: `{shown}`"
        yield Problem(message=message, line=line, column=column)


def _walk(root: Node) -> Iterator[Node]:
    """Every node, in the order of the text, without recursion."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.children)
