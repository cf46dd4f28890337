"""Loss masks: which tokens of a rendered conversation are targets.

qwen3_5    slime's: after `<|im_start|>assistant\\n` (and after a `<think>\\n` that follows at once), through
           `<|im_end|>` and the newline after it. A token is a target when one of its characters is.
qwen3      slime's: every message is rendered behind a user's one of its own, the texts are joined, and the
           assistant's tokens after as many as a generation prompt has are targets. So earlier answers get an empty
           think block of their own, and the text is not the one that the template gives for the whole.
assistant  what the template itself marks with `{% generation %}`; where it marks nothing, as qwen3_5, but
           with the `<think>\\n`.

Each is defined on the text, through the tokens' offsets (`from_offsets`). `from_ids` gives the same from the
ids alone, many conversations at a time, and None for one that it cannot tell.
(`qwen3` is in mask_qwen3.py)
slime: https://github.com/THUDM/slime/blob/624b824a898ab0ec1fcb4d373004c7f3852bf515/slime/utils/mask_utils.py
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from openrecipes.data.conversation import Conversation
from openrecipes.data.template import Rendered, TemplateFailedError
from openrecipes.data.token_table import TokenTable

HEADER, THINK, END = "<|im_start|>assistant\n", "<think>\n", "<|im_end|>"

Renderer = Callable[..., Rendered]
Span = tuple[int, int]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Layout:
    """A conversation's text, and what of it is trained.

    `trained` says for every assistant's message whether it is; `spans` are those that the template marked;
    `pieces` are the messages that were rendered apart: where each begins, and whether it is trained.
    """

    text: str
    trained: tuple[bool, ...] = ()
    spans: tuple[Span, ...] = ()
    pieces: tuple[tuple[int, bool], ...] = ()


class LossMask(Protocol):
    """How a conversation becomes text, and which of the text's tokens are targets."""

    def lay_out(self, conversation: Conversation) -> Layout:
        """Render; raises TemplateFailedError where the template refuses or the targets cannot be found."""
        ...

    def from_offsets(self, layout: Layout, offsets: np.ndarray) -> np.ndarray:
        """Targets from the tokens' (start, end) characters."""
        ...

    def from_ids(self, layouts: Sequence[Layout], ids: Sequence[np.ndarray]) -> list[np.ndarray | None]:
        """Targets from the ids; None where only the offsets can tell."""
        ...


def chatml_spans(text: str, trained: Sequence[bool], *, skip_think: bool) -> list[Span]:
    """The characters that are trained: an assistant's message is the next header's, in their order."""
    spans, cursor = [], 0
    for is_trained in trained:
        header = text.find(HEADER, cursor)
        content = header + len(HEADER)
        end = text.find(END, content)
        if header < 0 or end < 0:
            raise TemplateFailedError("an assistant's message is not between <|im_start|>assistant and <|im_end|>")
        cursor = end + len(END)
        cursor += text.startswith("\n", cursor)
        if is_trained:
            skipped = len(THINK) if skip_think and text.startswith(THINK, content) else 0
            spans.append((content + skipped, cursor))
    return spans


def targets_in(spans: Sequence[Span], offsets: np.ndarray, length: int) -> np.ndarray:
    """A token is a target if one of its characters is in a span."""
    inside = np.zeros(length + 1, dtype=np.int32)
    for start, end in spans:
        inside[start + 1 : end + 1] = 1
    before = np.cumsum(inside)
    starts, ends = offsets[:, 0], np.maximum(offsets[:, 0], offsets[:, 1])
    return (before[ends] > before[starts]).astype(np.uint8)


class ChatmlMask:
    """`qwen3_5`, and `assistant` where the template marks nothing."""

    def __init__(self, render: Renderer, table: TokenTable | None, *, skip_think: bool) -> None:
        self._render = render
        self._table = table
        self._skip_think = skip_think

    def lay_out(self, conversation: Conversation) -> Layout:
        """The whole conversation, rendered once."""
        return Layout(text=self._render(conversation).text, trained=_trained(conversation))

    def from_offsets(self, layout: Layout, offsets: np.ndarray) -> np.ndarray:
        """Search the text."""
        spans = chatml_spans(layout.text, layout.trained, skip_think=self._skip_think)
        return targets_in(spans, offsets, len(layout.text))

    def from_ids(self, layouts: Sequence[Layout], ids: Sequence[np.ndarray]) -> list[np.ndarray | None]:
        """Search the ids: where the header's newline, or the think block's, is one token with what follows,
        that token holds a character of the span and is a target.
        """
        table = self._table
        if table is None or not ids:
            return [None] * len(layouts)
        ends = np.cumsum([len(one) for one in ids])
        flat = np.concatenate([*ids, np.full(5, table.none, dtype=np.int32)])
        starts = np.flatnonzero(flat == table.start)
        headers = starts[(flat[starts + 1] == table.assistant) & table.begins_newline[flat[starts + 2]]]
        first = headers + 2 + (flat[headers + 2] == table.newline)
        if self._skip_think:
            think = (flat[headers + 2] == table.newline) & (flat[headers + 3] == table.think)
            think &= table.begins_newline[flat[headers + 4]]
            first = np.where(think, headers + 4 + (flat[headers + 4] == table.newline), first)
        turn_ends = np.flatnonzero(flat == table.end)
        turn = np.searchsorted(turn_ends, headers)
        last = np.append(turn_ends, ends[-1])[turn] + 1
        document = np.searchsorted(ends, headers, side="right")
        # One header for every message, each with an end of its own inside the conversation; else the text decides.
        clear = np.bincount(document, minlength=len(ids)) == [len(layout.trained) for layout in layouts]
        clear[document[last > ends[document]]] = False
        clear[document[1:][(turn[1:] == turn[:-1])]] = False
        last += (last < ends[document]) & table.begins_newline[flat[last]]
        flags = [layout.trained for layout, is_clear in zip(layouts, clear, strict=True) if is_clear]
        trained = clear[document]
        trained[trained] = np.fromiter(itertools.chain.from_iterable(flags), dtype=bool)
        steps = np.zeros(len(flat) + 1, dtype=np.int8)
        steps[first[trained]] += 1
        steps[last[trained]] -= 1
        mask = np.cumsum(steps, dtype=np.int8).astype(np.uint8)
        return [
            mask[end - len(one) : end].copy() if is_clear else None
            for one, end, is_clear in zip(ids, ends, clear, strict=True)
        ]


class GenerationMask:
    """`assistant`, where the template says itself what the assistant generated."""

    def __init__(self, render: Renderer) -> None:
        self._render = render

    def lay_out(self, conversation: Conversation) -> Layout:
        """The whole conversation, and the marked spans of the messages that are trained."""
        rendered, trained = self._render(conversation), _trained(conversation)
        if len(rendered.generations) != len(trained) and not all(trained):
            raise TemplateFailedError("the template marks other spans than one for each assistant's message")
        flags = trained if len(rendered.generations) == len(trained) else [True] * len(rendered.generations)
        spans = tuple(itertools.compress(rendered.generations, flags))
        return Layout(text=rendered.text, trained=trained, spans=spans)

    def from_offsets(self, layout: Layout, offsets: np.ndarray) -> np.ndarray:
        """Look the spans up."""
        return targets_in(layout.spans, offsets, len(layout.text))

    def from_ids(self, layouts: Sequence[Layout], ids: Sequence[np.ndarray]) -> list[np.ndarray | None]:
        """The marks are in the text only."""
        return [None] * len(layouts)


def _trained(conversation: Conversation) -> tuple[bool, ...]:
    return tuple(one.step_loss_mask == 1 for one in conversation.messages if one.role == "assistant")
