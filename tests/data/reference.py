"""Loss masks once more, written straightforwardly and apart from the product: the slow way that it must agree with.

`tokenizer` is transformers' own; messages are plain dicts. Nothing of openrecipes is imported here.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

TURN = r"<\|im_start\|>assistant\n{think}(.*?<\|im_end\|>\n?)"


def by_characters(tokenizer: Any, messages: list[dict], tools: list[dict] | None, *, skip_think: bool) -> Any:
    """Render the whole conversation, mark the characters that are trained, ask each token whether it has one."""
    text = tokenizer.apply_chat_template(messages, tools=tools, tokenize=False)
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    turns = re.finditer(TURN.format(think="(?:<think>\n)?" if skip_think else ""), text, re.DOTALL)
    assistant = [message for message in messages if message["role"] == "assistant"]
    trained: set[int] = set()
    for message, turn in zip(assistant, turns, strict=False):
        if message.get("step_loss_mask", 1) == 1:
            trained |= set(range(*turn.span(1)))
    mask = [int(any(n in trained for n in range(*offsets))) for offsets in encoded["offset_mapping"]]
    return encoded["input_ids"], mask


def message_by_message(tokenizer: Any, messages: list[dict], tools: list[dict] | None) -> Any:
    """Render every message (answers of tools together) beside a user's message, and join the ids."""

    def encode(some: list[dict], with_tools: list[dict] | None = None, prompt: bool = False) -> list[int]:
        return tokenizer.apply_chat_template(
            some, tools=with_tools, tokenize=True, return_dict=False, add_generation_prompt=prompt
        )

    user = {"role": "user", "content": "FOR CALCULATING LOSS MASK ONLY"}
    user_ids = encode([user])
    prompt_tokens = len(encode([user], prompt=True)) - len(user_ids)
    ids: list[int] = []
    mask: list[int] = []
    grouped = itertools.groupby(enumerate(messages), key=lambda pair: "tool" if pair[1]["role"] == "tool" else pair[0])
    for group in ([message for _, message in pairs] for _, pairs in grouped):
        first = not ids
        found = encode([*group, user], tools)[: -len(user_ids)] if first else encode([user, *group])[len(user_ids) :]
        trained = group[0]["role"] == "assistant" and group[0].get("step_loss_mask", 1) == 1
        ids += found
        mask += [int(trained and n >= prompt_tokens) for n in range(len(found))]
    return ids, mask
