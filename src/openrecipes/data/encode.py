"""Conversations to ids and masks: render, encode, mask; what cannot be encoded is a value with its reason."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from openrecipes.data.checkpoint import Checkpoint
from openrecipes.data.control import POLICIES, ControlTokens
from openrecipes.data.conversation import Conversation, Rejection, RejectionKind
from openrecipes.data.direct import direct_renderer
from openrecipes.data.encoders import HfEncoder, choose_engine
from openrecipes.data.mask_qwen3 import Qwen3Mask
from openrecipes.data.masks import ChatmlMask, GenerationMask, Layout, LossMask
from openrecipes.data.template import ChatTemplate, Rendered, TemplateFailedError
from openrecipes.data.token_table import TokenTable
from openrecipes.errors import UsageError

LOSS_MASKS = ("qwen3_5", "qwen3", "assistant")
_CHATML = ("<|im_start|>", "<|im_end|>")


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncodeOptions:
    """How conversations become tokens.

    `engine` decides how fast, not which: the ids of both are checked to be equal.
    """

    tokenizer: str
    expect_tokenizer_sha256: str | None = None
    loss_mask: str = "qwen3_5"
    control_tokens: str = "refuse"
    engine: str = "auto"

    def __post_init__(self) -> None:
        for name, known in (("loss_mask", LOSS_MASKS), ("control_tokens", POLICIES)):
            if (found := getattr(self, name)) not in known:
                raise UsageError(
                    f"{name} `{found}` is not known, expected one of {', '.join(known)}{_near(found, known)}"
                )


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Document:
    """One conversation: `ids` int32 and, for each, whether it is a target, `loss_mask` uint8."""

    ids: np.ndarray
    loss_mask: np.ndarray


class ConversationEncoder:
    """A checkpoint's tokenizer and template with a loss mask; loading takes seconds, so make one a process."""

    def __init__(self, options: EncodeOptions) -> None:
        """Load.

        Raises:
            UsageError: the folder lacks a file, has another tokenizer, or its template does not fit the mask.
            ContentError: a file of the folder is damaged.
            MissingToolError: the engine asked for is not there.
        """
        self._options = options
        self._checkpoint = checkpoint = Checkpoint.read(Path(options.tokenizer))
        if options.expect_tokenizer_sha256 is not None:
            checkpoint.require_tokenizer_sha256(options.expect_tokenizer_sha256)
        self._template = ChatTemplate(checkpoint.template, checkpoint.named_tokens)
        self._direct = direct_renderer(checkpoint.template_sha256)
        tokenizer_json = checkpoint.tokenizer_json.decode()
        self._reference = HfEncoder(tokenizer_json)
        self._engine = choose_engine(options.engine, tokenizer_json, self._reference)
        tokens = {one.text: one.id for one in checkpoint.added_tokens if one.special or one.text in _CHATML}
        self._control = ControlTokens(tokens)
        self._mask = self._loss_mask(options.loss_mask)
        self.vocab_size = 1 + max(self._reference.tokenizer.get_vocab(with_added_tokens=True).values())

    def encode(self, conversations: Sequence[Conversation]) -> list[Document | Rejection]:
        """One answer for each conversation, in their order."""
        laid_out = [self._lay_out(conversation) for conversation in conversations]
        plain = [one for one in laid_out if isinstance(one, Layout)]
        documents = iter(self._encode_plain(plain))
        return [one if isinstance(one, Document | Rejection) else _require_targets(next(documents)) for one in laid_out]

    def describe(self) -> dict[str, Any]:
        """What decides the ids, and under `engine` what only decides how fast they are made."""
        return {
            "tokenizer_sha256": self._checkpoint.tokenizer_sha256,
            "template_sha256": self._checkpoint.template_sha256,
            "vocab_size": self.vocab_size,
            "loss_mask": self._options.loss_mask,
            "control_tokens": self._options.control_tokens,
            "engine": {
                "name": self._engine.encoder.name,
                "version": self._engine.version,
                "fall_back": self._engine.fall_back,
                "template": "direct" if self._direct else "jinja2",
                "tokenizers": version("tokenizers"),
                "jinja2": version("jinja2"),
            },
        }

    def special(self, name: str) -> int:
        """The id of a special token.

        Raises:
            UsageError: the tokenizer has no such special token.
        """
        special = self._checkpoint.special_tokens
        if name not in special:
            raise UsageError(f"the tokenizer has no special token `{name}`{_near(name, special)}")
        return special[name]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of these ids, special tokens spelled out."""
        return self._reference.tokenizer.decode(list(ids), skip_special_tokens=False)

    def _loss_mask(self, name: str) -> LossMask:
        table = TokenTable.of(self._reference.tokenizer)
        if name == "qwen3":
            return Qwen3Mask(self._render, table, lambda text: len(self._reference.encode([text])[0]))
        if name == "assistant" and self._template.marks_generations:
            return GenerationMask(self._template.render)
        if "<|im_start|>" not in self._checkpoint.template:
            raise UsageError(
                f"loss mask `{name}` cannot find the assistant's words: the chat template is not ChatML"
                + (" and marks nothing with {% generation %}" if name == "assistant" else "")
            )
        return ChatmlMask(self._render, table, skip_think=name == "qwen3_5")

    def _render(self, conversation: Conversation, *, add_generation_prompt: bool = False) -> Rendered:
        if self._direct and not add_generation_prompt and (text := self._direct(conversation)) is not None:
            return Rendered(text)
        return self._template.render(conversation, add_generation_prompt=add_generation_prompt)

    def _lay_out(self, conversation: Conversation) -> Layout | Document | Rejection:
        spelled = self._control.find(conversation)
        if spelled and self._options.control_tokens == "refuse":
            return Rejection(RejectionKind.CONTROL_TOKEN, f"the text spells {spelled}")
        try:
            return self._encode_marked(conversation) if spelled else self._mask.lay_out(conversation)
        except TemplateFailedError as error:
            return Rejection(RejectionKind.TEMPLATE_ERROR, str(error))

    def _encode_plain(self, layouts: Sequence[Layout]) -> list[Document | Rejection]:
        """The fast path from ids, where the engine or the mask allows it, else the exact one from offsets."""
        if self._engine.encoder is self._reference:
            return [self._encode_exactly(layout) for layout in layouts]
        ids = self._engine.encoder.encode([layout.text for layout in layouts])
        masks = self._mask.from_ids(layouts, ids)
        return [
            self._encode_exactly(layout) if mask is None else Document(ids=one, loss_mask=mask)
            for layout, one, mask in zip(layouts, ids, masks, strict=True)
        ]

    def _encode_exactly(self, layout: Layout) -> Document | Rejection:
        ids, offsets = self._reference.encode_with_offsets(layout.text)
        return self._document(layout, ids, offsets)

    def _encode_marked(self, conversation: Conversation) -> Document | Rejection:
        marked, mark = self._control.mark(conversation)
        layout = self._mask.lay_out(marked)
        encoded = self._control.encode_marked(layout.text, mark, self._reference)
        if encoded is None:
            return Rejection(RejectionKind.TOKENIZER_MISMATCH, "plain text that the tokenizer makes a control token of")
        document = self._document(layout, *encoded)
        return document if isinstance(document, Rejection) else _require_targets(document)

    def _document(self, layout: Layout, ids: np.ndarray, offsets: np.ndarray) -> Document | Rejection:
        try:
            return Document(ids=ids, loss_mask=self._mask.from_offsets(layout, offsets))
        except TemplateFailedError as error:
            return Rejection(RejectionKind.TEMPLATE_ERROR, str(error))


def _require_targets(found: Document | Rejection) -> Document | Rejection:
    if isinstance(found, Document) and not found.loss_mask.any():
        return Rejection(RejectionKind.NO_TARGETS, "no token of it is a target")
    return found


def _near(found: str, known: Any) -> str:
    near = difflib.get_close_matches(found, list(known), 1)
    return f"; did you mean `{near[0]}`?" if near else ""
