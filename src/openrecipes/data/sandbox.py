"""The sandbox that chat templates run in: transformers' own, and bounded.

A template is a program. What could keep it running or growing for ever is counted: the passes of its loops, its
calls, and the size of what it joins, multiplies and writes. Filters are not bounded one by one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.utils
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

MAX_STEPS = 1_000_000
MAX_CHARACTERS = 64 * 2**20


class _Generation(jinja2.ext.Extension):
    """`{% generation %}` ... `{% endgeneration %}`: the text between is the assistant's."""

    tags = {"generation"}  # noqa: RUF012 - jinja2's own interface

    def parse(self, parser: jinja2.parser.Parser) -> jinja2.nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_generation"), [], [], body).set_lineno(line)

    def _generation(self, caller: Any) -> str:
        text = caller()
        environment: Any = self.environment
        start = sum(map(len, environment.blocks))
        environment.generations.append((start, start + len(text)))
        return text


class BoundedSandbox(ImmutableSandboxedEnvironment):
    """The environment of transformers' `apply_chat_template`, with bounds; one rendering at a time.

    `blocks` is the text so far, `generations` are the spans of it that the template marks.
    """

    intercepted_binops = frozenset({"+", "*", "**"})

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, "jinja2.ext.loopcontrols"])
        self.filters |= {"tojson": _tojson, "_counted": _counted, "_sized": _sized}
        self.globals |= {"raise_exception": _raise, "strftime_now": _no_clock}
        self.globals |= {"namespace": _Namespace, "dict": _Dict()}
        self.begin()

    def begin(self) -> None:
        """Forget the rendering before."""
        self.blocks: list[str] = []
        self.generations: list[tuple[int, int]] = []
        self._steps = 0

    def count(self, steps: int) -> None:
        """Count steps, and stop a template that takes too many."""
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise jinja2.TemplateRuntimeError(f"the template takes more than {MAX_STEPS} steps")

    def require_size(self, size: int) -> None:
        """Stop a template that makes too much."""
        if size > MAX_CHARACTERS:
            raise jinja2.TemplateRuntimeError(f"the template makes more than {MAX_CHARACTERS} characters")

    def _parse(self, source: str, name: str | None, filename: str | None) -> jinja2.nodes.Template:
        return _Instrument().visit(super()._parse(source, name, filename))

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """A call is a step, and no number in it may be a size out of bounds."""
        self.count(1)
        for number in args[2:]:  # after context and function: `ljust(10 ** 9)`
            if isinstance(number, int):
                self.require_size(number)
        return super().call(*args, **kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Operators that make long things out of short ones."""
        if operator == "**":
            raise jinja2.TemplateRuntimeError("the template raises to a power, which no chat needs")
        if operator == "*":
            length = len(left) if isinstance(left, str | list | tuple) else abs(left)
            other = len(right) if isinstance(right, str | list | tuple) else abs(right)
            self.require_size(length * other)
        result = super().call_binop(context, operator, left, right)
        if isinstance(result, str | list | tuple):
            self.require_size(len(result))
        return result


class _Instrument(NodeTransformer):
    """Counts the passes of every loop, and measures what `~` joins."""

    def visit_For(self, node: jinja2.nodes.For) -> jinja2.nodes.Node:  # noqa: N802 - jinja2's naming
        self.generic_visit(node)
        node.iter = jinja2.nodes.Filter(node.iter, "_counted", [], [], None, None, lineno=node.lineno)
        return node

    def visit_Concat(self, node: jinja2.nodes.Concat) -> jinja2.nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return jinja2.nodes.Filter(node, "_sized", [], [], None, None, lineno=node.lineno)


@jinja2.pass_context  # keeps the optimizer from evaluating it before there is a rendering
def _counted(context: Any, found: Iterable[Any]) -> Iterable[Any]:
    try:
        context.environment.count(len(found))  # type: ignore[arg-type]
    except TypeError:
        return _count_each(context.environment, found)
    return found


def _count_each(environment: BoundedSandbox, found: Iterable[Any]) -> Iterator[Any]:
    for one in found:
        environment.count(1)
        yield one


@jinja2.pass_context
def _sized(context: Any, text: str) -> str:
    context.environment.require_size(len(text))
    return text


def _tojson(
    found: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """As transformers has it: jinja2's own escapes HTML."""
    return json.dumps(found, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)


def _no_clock(format: str) -> None:
    raise jinja2.TemplateError("the template asks for today's date, so that its rows would differ from day to day")


class _Dict:
    """`dict(...)` without the attributes of the type itself."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args, **kwargs)


class _Namespace(jinja2.utils.Namespace):
    """Refuses names that begin with an underscore, which lead out of the sandbox."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        self, *rest = args
        found = dict(*rest, **kwargs)
        for name in found:
            _require_plain_name(name)
        jinja2.utils.Namespace.__init__(self, found)

    def __setitem__(self, name: str, value: Any) -> None:
        _require_plain_name(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)


def _require_plain_name(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError(f"a namespace cannot hold {name!r}")
