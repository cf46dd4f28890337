"""Chat templates, rendered as transformers does and within bounds.

A template is a program out of a checkpoint's folder; `sandbox.py` says what it may do.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

import jinja2

from openrecipes.data.conversation import Conversation
from openrecipes.data.sandbox import BoundedSandbox
from openrecipes.errors import UsageError


class TemplateFailedError(Exception):
    """The template refused a conversation, in its own words, or went out of bounds."""


@dataclasses.dataclass(frozen=True)
class Rendered:
    """A conversation's text; `generations` are the spans that the template itself marks as the assistant's."""

    text: str
    generations: tuple[tuple[int, int], ...] = ()


class ChatTemplate:
    """A compiled template; `named_tokens` are the tokens that it may ask for (`eos_token`)."""

    def __init__(self, source: str, named_tokens: Mapping[str, str]) -> None:
        """Compile.

        Raises:
            UsageError: the template is no jinja2.
        """
        self._named = dict(named_tokens)
        self.marks_generations = re.search(r"\{%-?\s*generation\s*-?%\}", source) is not None
        self._environment = BoundedSandbox()
        try:
            self._template = self._environment.from_string(source)
        except jinja2.TemplateSyntaxError as error:
            raise UsageError(f"the chat template is no jinja2: line {error.lineno}: {error.message}") from error

    def render(self, conversation: Conversation, *, add_generation_prompt: bool = False) -> Rendered:
        """Render a conversation.

        Raises:
            TemplateFailedError: the template raised an error, or went out of bounds.
        """
        messages = [message.to_template() for message in conversation.messages]
        tools = None if conversation.tools is None else list(conversation.tools)
        return self.render_messages(messages, tools, add_generation_prompt=add_generation_prompt)

    def render_messages(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        add_generation_prompt: bool = False,
    ) -> Rendered:
        """Render messages as they are."""
        self._environment.begin()
        size = 0
        try:
            for block in self._template.generate(
                messages=messages,
                tools=tools,
                documents=None,
                add_generation_prompt=add_generation_prompt,
                **self._named,
            ):
                size += len(block)
                self._environment.require_size(size)
                self._environment.blocks.append(block)
        except Exception as error:  # a template is a program: it may raise anything
            raise TemplateFailedError(_message(error)) from error
        return Rendered("".join(self._environment.blocks), tuple(self._environment.generations))


def _message(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "the template calls itself without end"
    return f"{error}" if isinstance(error, jinja2.TemplateError) else f"{type(error).__name__}: {error}"
