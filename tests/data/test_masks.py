"""Masks: slime's edge cases by text, and equality with an independent implementation on real and on made chats."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import assets
import numpy as np
import pytest
import reference
import shared_engines
from chats import PATIENT, conversations
from hypothesis import given, settings

from openrecipes.data.conversation import Conversation, Message, Rejection, read_conversation
from openrecipes.data.encode import ConversationEncoder, Document, EncodeOptions
from openrecipes.data.masks import Layout, chatml_spans, targets_in
from openrecipes.data.template import TemplateFailedError

ENGINES = ("hf", "fastokens")
FOLDERS = {
    "qwen3_5": assets.qwen3_5_checkpoint,
    "qwen3": assets.qwen3_checkpoint,
    "qwen3_5, 248k tokens": assets.qwen3_5_vocabulary,
}


@cache
def encoder(template: str, loss_mask: str, engine: str, control_tokens: str = "refuse") -> ConversationEncoder:
    if engine == "fastokens":
        pytest.importorskip("fastokens")
    return shared_engines.load(
        EncodeOptions(
            tokenizer=str(FOLDERS[template]()), loss_mask=loss_mask, engine=engine, control_tokens=control_tokens
        )
    )


@cache
def transformers_tokenizer(template: str) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(FOLDERS[template]())


def targets(found: Document | Rejection, decode: Any) -> list[str]:
    """The text of every stretch of targets."""
    assert isinstance(found, Document), found
    pairs = zip(found.ids.tolist(), found.loss_mask.tolist(), strict=True)
    return [decode([id for id, _ in run]) for target, run in itertools.groupby(pairs, lambda pair: pair[1]) if target]


def user(text: str) -> Message:
    return Message("user", text)


def system(text: str) -> Message:
    return Message("system", text)


def tool(text: str) -> Message:
    return Message("tool", text)


def said(text: str, **more: Any) -> Message:
    return Message("assistant", text, **more)


EMPTY_THOUGHT = "\n\n</think>\n\n"  # one token holds the newline after <think> and the empty line: it is a target
CALL = {"type": "function", "function": {"name": "f", "arguments": {"x": 1}}}
CALLED = "<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call><|im_end|>\n"
# The cases of slime's rule with the official Qwen3.5 template; a text is what a rejection says.
EDGES: dict[str, tuple[list[Message], list[str] | str]] = {
    "one turn without reasoning": ([user("q"), said("ans")], [EMPTY_THOUGHT + "ans<|im_end|>\n"]),
    "reasoning in the text": (
        [user("q"), said("<think>\nwhy\n</think>\n\nans")],
        ["why\n</think>\n\nans<|im_end|>\n"],
    ),
    "reasoning in a field of its own": (
        [user("q"), said("ans", reasoning_content="why")],
        ["why\n</think>\n\nans<|im_end|>\n"],
    ),
    "two turns": (
        [user("q1"), said("a1"), user("q2"), said("a2")],
        ["a1<|im_end|>\n", EMPTY_THOUGHT + "a2<|im_end|>\n"],
    ),
    "reasoning of an earlier turn is dropped": (
        [user("q1"), said("<think>\nr1\n</think>\n\na1"), user("q2"), said("<think>\nr2\n</think>\n\na2")],
        ["a1<|im_end|>\n", "r2\n</think>\n\na2<|im_end|>\n"],
    ),
    "step_loss_mask 0 on the first turn": (
        [user("q1"), said("a1", step_loss_mask=0), user("q2"), said("a2")],
        [EMPTY_THOUGHT + "a2<|im_end|>\n"],
    ),
    "step_loss_mask 0 on all": ([user("q"), said("a", step_loss_mask=0)], "no_targets"),
    "an empty answer": ([user("q"), said("")], [EMPTY_THOUGHT + "<|im_end|>\n"]),
    "the user spells the assistant's header": ([user("x <|im_start|>assistant\nfake"), said("real")], "control_token"),
    "the assistant spells <|im_end|>": ([user("q"), said("one<|im_end|>two")], "control_token"),
    "no user": ([system("s"), said("a")], "No user query found in messages."),
    "no assistant": ([system("s"), user("q")], "no_targets"),
    "the user has the last word": ([user("q1"), said("a1"), user("q2")], ["a1<|im_end|>\n"]),
    "system in the middle": ([user("q"), system("s"), said("a")], "System message must be at the beginning."),
    "a call, two answers, and the end": (
        [user("q"), said("", tool_calls=(CALL,)), tool("r1"), tool("r2"), said("done")],
        [EMPTY_THOUGHT + CALLED, EMPTY_THOUGHT + "done<|im_end|>\n"],
    ),
    "the assistant speaks first": (
        [said("hi"), user("q"), said("a")],
        ["hi<|im_end|>\n", EMPTY_THOUGHT + "a<|im_end|>\n"],
    ),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", EDGES)
def test_edge_cases_of_slime_s_rule(case, engine):
    messages, expected = EDGES[case]
    qwen3_5 = encoder("qwen3_5", "qwen3_5", engine)
    found = qwen3_5.encode([Conversation(tuple(messages))])[0]
    if isinstance(expected, str):
        assert isinstance(found, Rejection)
        assert expected in (found.kind.value, found.detail)
    else:
        assert targets(found, qwen3_5.decode) == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_edge_case_17_another_key_than_step_loss_mask_has_no_effect(engine):
    record = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a", "loss": 0}]}
    conversation = read_conversation(record)
    assert isinstance(conversation, Conversation)
    qwen3_5 = encoder("qwen3_5", "qwen3_5", engine)
    assert targets(qwen3_5.encode([conversation])[0], qwen3_5.decode) == [EMPTY_THOUGHT + "a<|im_end|>\n"]


@pytest.mark.parametrize("engine", ENGINES)
def test_qwen3_gives_earlier_answers_an_empty_thought_of_their_own(engine):
    qwen3 = encoder("qwen3", "qwen3", engine)
    messages = (user("q1"), said("a1"), user("q2"), said("a2"))
    found = qwen3.encode([Conversation(messages)])[0]
    assert targets(found, qwen3.decode) == [f"<think>{EMPTY_THOUGHT}a{n}<|im_end|>\n" for n in (1, 2)]


@pytest.mark.parametrize("engine", ENGINES)
def test_qwen3_on_one_turn_differs_from_qwen3_5_in_the_think_tag_only(engine):
    conversation = Conversation((user("q"), said("a")))
    found = [encoder("qwen3", mask, engine).encode([conversation])[0] for mask in ("qwen3", "qwen3_5")]
    assert isinstance(found[0], Document)
    assert isinstance(found[1], Document)
    assert found[0].ids.tolist() == found[1].ids.tolist()
    differing = found[0].ids[found[0].loss_mask != found[1].loss_mask]
    assert encoder("qwen3", "qwen3", engine).decode(differing.tolist()) == "<think>"


@pytest.mark.parametrize("engine", ENGINES)
def test_assistant_trains_the_think_tag_too(engine):
    assistant = encoder("qwen3_5", "assistant", engine)
    found = assistant.encode([Conversation((user("q"), said("a")))])[0]
    assert targets(found, assistant.decode) == [f"<think>{EMPTY_THOUGHT}a<|im_end|>\n"]


@cache
def real_conversations() -> list[Conversation]:
    found = [read_conversation(record) for record in assets.llamafactory() + assets.chitchat(2600)]
    return [conversation for conversation in found if isinstance(conversation, Conversation)]


def by_reference(template: str, loss_mask: str, conversation: Conversation) -> tuple[list[int], list[int]] | None:
    """The independent implementation's answer, or None where it or the template refuses."""
    tokenizer = transformers_tokenizer(template)
    messages = [one.to_template() | {"step_loss_mask": one.step_loss_mask} for one in conversation.messages]
    tools: Any = None if conversation.tools is None else list(conversation.tools)
    try:
        if loss_mask == "qwen3":
            return reference.message_by_message(tokenizer, messages, tools)
        return reference.by_characters(tokenizer, messages, tools, skip_think=loss_mask == "qwen3_5")
    except Exception:
        return None


def disagreement(found: Document | Rejection, expected: tuple[list[int], list[int]] | None) -> str | None:
    if isinstance(found, Rejection):
        refused = expected is None or not any(expected[1])
        return None if refused else f"rejected: {found}"
    if expected is None:
        return "should be refused"
    if found.ids.tolist() != expected[0]:
        return "other ids"
    return None if found.loss_mask.tolist() == expected[1] else "another mask"


def encode_all(with_encoder: ConversationEncoder, chats: list[Conversation]) -> list[Document | Rejection]:
    return [found for n in range(0, len(chats), 64) for found in with_encoder.encode(chats[n : n + 64])]


def test_more_than_5000_real_conversations_are_masked_as_the_independent_implementation_does():
    chats = real_conversations()
    assert len(chats) > 5000
    found = encode_all(encoder("qwen3_5", "qwen3_5", "fastokens"), chats)
    wrong = [
        (number, problem)
        for number, (chat, one) in enumerate(zip(chats, found, strict=True))
        if (problem := disagreement(one, by_reference("qwen3_5", "qwen3_5", chat)))
    ]
    assert wrong == []
    documents = [one for one in found if isinstance(one, Document)]
    assert len(documents) > 5000
    assert 0.1 < np.mean([one.loss_mask.mean() for one in documents]) < 0.9
    assert sum(any(message.tool_calls for message in chat.messages) for chat in chats) > 300


@pytest.mark.parametrize(
    ("template", "loss_mask"),
    [
        ("qwen3_5", "qwen3"),
        ("qwen3", "qwen3"),
        ("qwen3", "qwen3_5"),
        ("qwen3_5", "assistant"),
        ("qwen3_5, 248k tokens", "qwen3_5"),
    ],
)
def test_other_masks_and_templates_on_a_part_of_the_real_conversations(template, loss_mask):
    chats = real_conversations()[::53]
    expected = [by_reference(template, loss_mask, chat) for chat in chats]
    for engine in ENGINES:
        found = encode_all(encoder(template, loss_mask, engine), chats)
        wrong = [disagreement(*pair) for pair in zip(found, expected, strict=True) if disagreement(*pair)]
        assert wrong == [], engine


@pytest.mark.parametrize("loss_mask", ["qwen3_5", "qwen3", "assistant"])
@pytest.mark.parametrize("template", ["qwen3_5", "qwen3"])
def test_made_conversations_are_masked_as_the_independent_implementation_does(template, loss_mask):
    seen = []
    beside = [by_reference(template, loss_mask, chat) for chat in NEIGHBOURS]

    @settings(PATIENT, max_examples=40)
    @given(conversations())
    def compare(conversation):
        expected = by_reference(template, loss_mask, conversation)
        for engine in ENGINES:
            # Between two others, so that a mask that strays over a conversation's end is seen.
            chats = [NEIGHBOURS[0], conversation, NEIGHBOURS[1]]
            found = encoder(template, loss_mask, engine).encode(chats)
            for one, wanted in zip(found, [beside[0], expected, beside[1]], strict=True):
                assert disagreement(one, wanted) is None, engine
        seen.append(expected is not None)

    compare()
    assert sum(seen) > 10


@pytest.mark.parametrize("loss_mask", ["qwen3_5", "qwen3", "assistant"])
@pytest.mark.parametrize("template", ["qwen3_5", "qwen3"])
def test_answers_that_begin_like_a_think_block_or_with_white_space(template, loss_mask):
    answers = ["<think>x", "<think>", "<think>\n", "<think>\n\nx", "<think> \nx", "<think>\r\nx", "\n<think>\nx"]
    answers += ["\n", "\n\nx", " x", "\n \n x", "x\n\n", "", "</think>x", "x</think>", "assistant\n"]
    chats = [Conversation((user("q"), said(answer), user(answer), said(answer))) for answer in answers]
    expected = [by_reference(template, loss_mask, chat) for chat in chats]
    for engine in ENGINES:
        found = encoder(template, loss_mask, engine).encode(chats)
        assert [disagreement(*pair) for pair in zip(found, expected, strict=True)] == [None] * len(chats), engine


NEIGHBOURS = [Conversation((user("q"), said("a"))), Conversation((user("\n"), said("\n\n a"), user("q")))]


def test_the_fast_path_and_not_the_exact_one_masks_ordinary_chats():
    fast = encoder("qwen3_5", "qwen3_5", "fastokens")
    layouts = [fast._mask.lay_out(chat) for chat in NEIGHBOURS]
    ids = fast._engine.encoder.encode([layout.text for layout in layouts])
    assert all(mask is not None for mask in fast._mask.from_ids(layouts, ids))


@pytest.mark.parametrize(
    ("text", "trained"),
    [
        ("<|im_start|>assistant\nno end", (True,)),
        ("<|im_start|>assistant\none<|im_start|>assistant\ntwo<|im_end|>\n", (True, True)),
        ("<|im_start|>assistant\nmore headers<|im_end|>\n", ()),
        ("<|im_start|>user\nfewer headers<|im_end|>\n", (True,)),
    ],
)
@pytest.mark.parametrize("last", [True, False])
def test_where_the_ids_cannot_tell_they_say_so_and_the_neighbours_keep_their_masks(text, trained, last):
    fast = encoder("qwen3_5", "qwen3_5", "fastokens")
    unclear, chat = Layout(text=text, trained=trained), fast._mask.lay_out(NEIGHBOURS[0])
    layouts = [chat, unclear] if last else [unclear, chat]
    ids = fast._engine.encoder.encode([layout.text for layout in layouts])
    masks = fast._mask.from_ids(layouts, ids)
    assert masks[layouts.index(unclear)] is None
    expected = by_reference("qwen3_5", "qwen3_5", NEIGHBOURS[0])
    found = masks[layouts.index(chat)]
    assert found is not None
    assert expected is not None
    assert found.tolist() == expected[1]


def test_a_mask_moved_by_one_token_is_noticed():
    chat = Conversation((user("q"), said("a")))
    found = encoder("qwen3_5", "qwen3_5", "fastokens").encode([chat])[0]
    assert isinstance(found, Document)
    moved = Document(ids=found.ids, loss_mask=np.roll(found.loss_mask, 1))
    assert disagreement(moved, by_reference("qwen3_5", "qwen3_5", chat)) == "another mask"


def test_a_mask_with_the_think_tag_is_noticed():
    chat = Conversation((user("q"), said("a")))
    found = encoder("qwen3_5", "assistant", "fastokens").encode([chat])[0]
    assert disagreement(found, by_reference("qwen3_5", "qwen3_5", chat)) == "another mask"


def test_slime_s_rule_lets_spelled_control_tokens_move_the_mask_which_is_why_they_are_refused():
    chat = Conversation((user("x <|im_start|>assistant\nfake"), said("real")))
    ids, mask = by_reference("qwen3_5", "qwen3_5", chat) or ([], [])
    trained = encoder("qwen3_5", "qwen3_5", "hf").decode([id for id, one in zip(ids, mask, strict=True) if one])
    assert "fake" in trained
    assert "real" not in trained


def test_text_without_the_header_or_the_end_is_an_error():
    for text in ("hello", "<|im_start|>assistant\nhello"):
        with pytest.raises(TemplateFailedError, match="not between"):
            chatml_spans(text, [True], skip_think=True)


def test_a_token_is_a_target_if_one_of_its_characters_is_and_an_empty_one_never():
    offsets = np.array([(0, 2), (2, 4), (4, 4), (4, 6), (6, 7)])
    assert targets_in([(3, 5)], offsets, 7).tolist() == [0, 1, 0, 1, 0]
