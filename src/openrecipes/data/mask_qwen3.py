"""slime's `qwen3` mask: every message is rendered apart, so that the text is not the template's for the whole."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from openrecipes.data.conversation import Conversation, Message
from openrecipes.data.masks import Layout, Renderer
from openrecipes.data.template import TemplateFailedError
from openrecipes.data.token_table import TokenTable
from openrecipes.errors import UsageError

_START = "<|im_start|>"
_PROBE = Message("user", "FOR CALCULATING LOSS MASK ONLY")


class Qwen3Mask:
    """`qwen3`."""

    def __init__(self, render: Renderer, table: TokenTable | None, count_tokens: Callable[[str], int]) -> None:
        """Measure the generation prompt.

        Raises:
            UsageError: the template puts a system message of its own in front, or is not ChatML.
        """
        self._render = render
        self._table = table
        try:
            self._probe = render(Conversation((_PROBE,))).text
            twice = render(Conversation((_PROBE, _PROBE))).text
            prompted = render(Conversation((_PROBE, _PROBE)), add_generation_prompt=True).text
        except TemplateFailedError as error:
            raise UsageError(f"loss mask `qwen3` cannot use this chat template: {error}") from error
        if twice != self._probe * 2 or not self._probe.startswith(_START) or not prompted.startswith(twice):
            raise UsageError(
                "loss mask `qwen3` is for ChatML templates that add nothing before the first message; "
                "use `assistant`, or the mask of this template's model"
            )
        self._prompt_tokens = count_tokens(prompted[len(twice) :])

    def lay_out(self, conversation: Conversation) -> Layout:
        """Every message (consecutive answers of tools as one) behind, the first before, a user's message."""
        texts, pieces, position = [], [], 0
        for group in _groups(conversation.messages):
            text = self._apart(group, conversation.tools if not texts else None, first=not texts)
            pieces.append((position, group[0].role == "assistant" and group[0].step_loss_mask == 1))
            texts.append(text)
            position += len(text)
        return Layout(text="".join(texts), pieces=tuple(pieces))

    def _apart(self, group: Sequence[Message], tools: tuple | None, *, first: bool) -> str:
        around = (*group, _PROBE) if first else (_PROBE, *group)
        text = self._render(Conversation(around, tools)).text
        inner = text.removesuffix(self._probe) if first else text.removeprefix(self._probe)
        if inner == text or not inner.startswith(_START):
            raise TemplateFailedError(f"the template does not render a {group[0].role}'s message apart from others")
        return inner

    def from_offsets(self, layout: Layout, offsets: np.ndarray) -> np.ndarray:
        """Pieces begin with a token of their own, so the character where one begins is where its token begins."""
        begins = [start for start, _ in layout.pieces]
        return self._mask(layout, np.searchsorted(offsets[:, 0], begins), len(offsets))

    def from_ids(self, layouts: Sequence[Layout], ids: Sequence[np.ndarray]) -> list[np.ndarray | None]:
        """A piece begins at the `<|im_start|>` before which as many stand in the ids as in the text."""
        if self._table is None:
            return [None] * len(layouts)
        return [self._from_ids(layout, one, self._table) for layout, one in zip(layouts, ids, strict=True)]

    def _from_ids(self, layout: Layout, ids: np.ndarray, table: TokenTable) -> np.ndarray | None:
        starts = np.flatnonzero(ids == table.start)
        begins = [start for start, _ in layout.pieces]
        counts = [layout.text.count(_START, *pair) for pair in itertools.pairwise([*begins, len(layout.text)])]
        if sum(counts) != len(starts):
            return None
        return self._mask(layout, starts[np.cumsum([0, *counts[:-1]])], len(ids))

    def _mask(self, layout: Layout, begins: np.ndarray, length: int) -> np.ndarray:
        mask = np.zeros(length, dtype=np.uint8)
        for (_, trained), (begin, end) in zip(layout.pieces, itertools.pairwise([*begins, length]), strict=True):
            if trained:
                mask[begin + self._prompt_tokens : end] = 1
        return mask


def _groups(messages: Sequence[Message]) -> list[Sequence[Message]]:
    groups: list[list[Message]] = []
    for message in messages:
        if groups and message.role == "tool" and groups[-1][-1].role == "tool":
            groups[-1].append(message)
        else:
            groups.append([message])
    return [tuple(group) for group in groups]
