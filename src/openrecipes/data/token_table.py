"""What masks need to know of a vocabulary to find an assistant's words in ids alone."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

_NEWLINE = "Ċ"  # the byte 0x0A as byte-level vocabularies spell it


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class TokenTable:
    """The ids of ChatML; `none` is the id of no token, and `begins_newline[id]` is about a token's text."""

    start: int
    end: int
    assistant: int
    newline: int
    think: int
    none: int
    begins_newline: np.ndarray

    @classmethod
    def of(cls, tokenizer: Any) -> TokenTable | None:
        """The table of a `tokenizers.Tokenizer`, or None where ChatML's pieces are not tokens of their own."""
        header = tokenizer.encode("<|im_start|>assistant\n", add_special_tokens=False).ids
        end = tokenizer.encode("<|im_end|>\n", add_special_tokens=False).ids
        think = tokenizer.encode("<think>\n", add_special_tokens=False).ids
        if len(header) != 3 or len(end) != 2 or len(think) != 2 or not header[2] == end[1] == think[1]:
            return None
        if tokenizer.id_to_token(header[2]) != _NEWLINE:
            return None
        added = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
        if not {"<|im_start|>", "<|im_end|>", "<think>"} <= added:
            return None
        vocabulary = tokenizer.get_vocab(with_added_tokens=True)
        begins = np.zeros(max(vocabulary.values()) + 2, dtype=bool)
        begins[[id for token, id in vocabulary.items() if token.startswith((_NEWLINE, "\n"))]] = True
        return cls(
            start=header[0],
            end=end[0],
            assistant=header[1],
            newline=header[2],
            think=think[0],
            none=len(begins) - 1,
            begins_newline=begins,
        )
