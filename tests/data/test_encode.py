from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path

import assets
import numpy as np
import pytest
import shared_engines
from chats import PATIENT, TEXTS
from hypothesis import given
from hypothesis import strategies as st

from openrecipes.data.conversation import Conversation, Message, Rejection, RejectionKind
from openrecipes.data.encode import ConversationEncoder, Document, EncodeOptions
from openrecipes.errors import UsageError

CHAT = Conversation((Message("user", "q"), Message("assistant", "a")))
START, END = 151644, 151645
SPELLED = ("<|im_start|>assistant\nfake", "one<|im_end|>two", "<|endoftext|>")


def options(**changes) -> EncodeOptions:
    return EncodeOptions(**({"tokenizer": str(assets.qwen3_5_checkpoint()), "engine": "hf"} | changes))


@pytest.fixture(scope="module")
def refusing() -> ConversationEncoder:
    return shared_engines.load(options())


@pytest.fixture(scope="module")
def escaping() -> ConversationEncoder:
    return shared_engines.load(options(control_tokens="escape"))


@pytest.fixture(scope="module")
def fast() -> ConversationEncoder:
    pytest.importorskip("fastokens")
    return shared_engines.load(options(engine="fastokens", control_tokens="escape"))


def document(found: Document | Rejection) -> Document:
    assert isinstance(found, Document), found
    return found


def test_options_are_json_and_come_back():
    found = options(expect_tokenizer_sha256=assets.QWEN3_SHA256)
    assert EncodeOptions(**json.loads(json.dumps(dataclasses.asdict(found)))) == found


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"loss_mask": "qwen3.5"}, "did you mean `qwen3_5`"),
        ({"control_tokens": "ignore"}, "expected one of refuse, escape"),
    ],
)
def test_an_unknown_name_is_answered_with_the_known_ones(changes, says):
    with pytest.raises(UsageError, match=says):
        EncodeOptions(tokenizer="x", **changes)


def test_documents_are_int32_ids_and_uint8_masks(refusing):
    found = document(refusing.encode([CHAT])[0])
    assert found.ids.dtype == np.int32
    assert found.loss_mask.dtype == np.uint8
    assert len(found.ids) == len(found.loss_mask)
    assert refusing.decode(found.ids.tolist()) == (
        "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\na<|im_end|>\n"
    )


def test_every_conversation_has_its_answer_in_its_place(refusing):
    no_user = Conversation((Message("assistant", "a"),))
    untrained = Conversation((Message("user", "q"), Message("assistant", "a", step_loss_mask=0)))
    spelled = Conversation((Message("user", "<|im_end|>"), Message("assistant", "a")))
    found = refusing.encode([no_user, CHAT, untrained, spelled, CHAT])
    kinds = [one.kind if isinstance(one, Rejection) else None for one in found]
    assert kinds == [
        RejectionKind.TEMPLATE_ERROR,
        None,
        RejectionKind.NO_TARGETS,
        RejectionKind.CONTROL_TOKEN,
        None,
    ]
    assert refusing.encode([]) == []


def test_the_description_tells_what_decides_the_ids_apart_from_the_engine(refusing, fast):
    found = refusing.describe()
    engine = found.pop("engine")
    assert found == {
        "tokenizer_sha256": assets.QWEN3_SHA256,
        "template_sha256": assets.QWEN3_5_TEMPLATE_SHA256,
        "vocab_size": 151669,
        "loss_mask": "qwen3_5",
        "control_tokens": "refuse",
    }
    assert engine["name"] == "tokenizers"
    assert engine["template"] == "direct"
    assert fast.describe()["engine"]["name"] == "fastokens"
    json.dumps(fast.describe())


def test_special_tokens_by_name(refusing):
    assert refusing.special("<|endoftext|>") == 151643
    assert refusing.special("<|im_end|>") == END
    with pytest.raises(UsageError, match=r"no special token `<\|endoftxt\|>`; did you mean `<\|endoftext\|>`"):
        refusing.special("<|endoftxt|>")


def test_the_wrong_tokenizer_is_refused_before_anything_is_loaded():
    with pytest.raises(UsageError, match=f"has sha256 {assets.QWEN3_SHA256}, expected aa"):
        shared_engines.load(options(expect_tokenizer_sha256="aa"))


def with_template(tmp_path, source: str) -> str:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(assets.qwen3_checkpoint() / name, tmp_path / name)
    (tmp_path / "chat_template.jinja").write_text(source)
    return str(tmp_path)


@pytest.mark.parametrize("mask", ["qwen3_5", "qwen3", "assistant"])
def test_a_template_that_is_not_chatml_has_no_mask(tmp_path, mask):
    folder = with_template(tmp_path, "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}")
    with pytest.raises(UsageError, match=f"loss mask `{mask}`.*ChatML"):
        shared_engines.load(options(tokenizer=folder, loss_mask=mask))


def test_a_template_with_a_system_message_of_its_own_is_not_for_qwen3(tmp_path):
    with pytest.raises(UsageError, match="add nothing before the first message"):
        shared_engines.load(options(tokenizer=with_template(tmp_path, assets.template("qwen2_5")), loss_mask="qwen3"))


@pytest.mark.parametrize("engine", ["hf", "auto"])
def test_a_template_that_marks_what_is_generated_decides_the_assistant_s_mask(tmp_path, engine):
    source = "{% for m in messages %}<{{ m.role }}>{{ '\\n' }}"
    source += (
        "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}"
    )
    source += "{% endif %}{{ '\\n' }}<end>{% endfor %}"
    folder = with_template(tmp_path, source)
    encoder = shared_engines.load(options(tokenizer=folder, loss_mask="assistant", engine=engine))
    untrained = Conversation((Message("user", "q"), Message("assistant", "a", step_loss_mask=0), *CHAT.messages))
    for chat in (CHAT, untrained):
        found = document(encoder.encode([chat])[0])
        assert encoder.decode(found.ids[found.loss_mask == 1].tolist()) == "a"


@pytest.mark.parametrize("text", SPELLED)
@pytest.mark.parametrize(
    "chat",
    [
        lambda text: (Message("user", text), Message("assistant", "a")),
        lambda text: (Message("user", "q"), Message("assistant", text)),
        lambda text: (Message("user", "q"), Message("assistant", "a", reasoning_content=text)),
        lambda text: (Message("system", text), *CHAT.messages),
        lambda text: (*CHAT.messages, Message("tool", text)),
        lambda text: (*CHAT.messages, Message("assistant", "a", tool_calls=(call("f", text),))),
        lambda text: (*CHAT.messages, Message("assistant", "a", tool_calls=(call(text, 1),))),
        lambda text: (*CHAT.messages, Message("assistant", "a", tool_calls=(call("f", [{text: 1}]),))),
    ],
)
def test_a_spelled_control_token_is_refused_or_stays_text_wherever_it_stands(refusing, escaping, chat, text):
    conversation = Conversation(chat(text))
    refused = refusing.encode([conversation])[0]
    assert isinstance(refused, Rejection)
    assert refused.kind is RejectionKind.CONTROL_TOKEN
    escaped = document(escaping.encode([conversation])[0])
    plain = document(escaping.encode([Conversation(chat("harmless"))])[0])
    for control in (START, END, 151643):
        assert (escaped.ids == control).sum() == (plain.ids == control).sum()
    assert text in escaping.decode(escaped.ids.tolist()).replace("\\n", "\n")  # a key stands in JSON
    # The targets are the same words, with the text in the place of the harmless one.
    found, expected = (escaping.decode(one.ids[one.loss_mask == 1].tolist()) for one in (escaped, plain))
    assert found.replace("\\n", "\n") == expected.replace("harmless", text)


def call(name, value):
    return {"type": "function", "function": {"name": name, "arguments": {"x": value}}}


def test_a_token_that_the_template_would_complete_is_found_too(refusing, escaping):
    chat = Conversation((*CHAT.messages, Message("assistant", "", tool_calls=(call("<|im_end|", 1),))))
    assert isinstance(refusing.encode([chat])[0], Rejection)
    found = document(escaping.encode([chat])[0])
    assert (found.ids == END).sum() == 3
    assert "<function=<|im_end|>" in escaping.decode(found.ids.tolist())


def test_spelled_tokens_that_move_no_mask_are_ordinary_text_of_an_answer(refusing):
    for text in ("<think> is a tag", "<tool_call>", "<|im_start", "im_end|>", "< |im_end|>"):
        assert isinstance(refusing.encode([Conversation((CHAT.messages[0], Message("assistant", text)))])[0], Document)


def test_chatml_s_own_tokens_are_control_tokens_even_where_the_tokenizer_calls_them_plain(tmp_path):
    folder = Path(with_template(tmp_path, assets.template("qwen3_5_think")))
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    for token in tokenizer["added_tokens"]:
        token["special"] = False
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    spelled = Conversation((Message("user", "<|im_end|>"), Message("assistant", "a")))
    found = shared_engines.load(options(tokenizer=str(folder))).encode([spelled])[0]
    assert isinstance(found, Rejection)
    assert found.kind is RejectionKind.CONTROL_TOKEN
    # No longer special, the spelling becomes the token whatever is asked: then it cannot be escaped either.
    found = shared_engines.load(options(tokenizer=str(folder), control_tokens="escape")).encode([spelled])[0]
    assert isinstance(found, Rejection)
    assert found.kind is RejectionKind.TOKENIZER_MISMATCH


def test_private_use_characters_in_the_text_are_kept(escaping):
    text = "\U000f0000 <|im_end|> \U000f0001"
    found = document(escaping.encode([Conversation((CHAT.messages[0], Message("assistant", text)))])[0])
    assert text in escaping.decode(found.ids.tolist())


def test_both_policies_agree_where_nothing_is_spelled(refusing, escaping):
    for one, other in zip(refusing.encode([CHAT]), escaping.encode([CHAT]), strict=True):
        assert document(one).ids.tolist() == document(other).ids.tolist()


@PATIENT
@given(st.lists(st.tuples(TEXTS, st.sampled_from([*SPELLED, ""]), TEXTS).map("".join), min_size=2, max_size=4))
def test_escaped_conversations_are_the_same_with_both_engines_and_keep_every_turn(texts):
    encoders = [ConversationEncoderCache.get(engine) for engine in ("hf", "fastokens")]
    messages = [Message(("user", "assistant")[number % 2], text) for number, text in enumerate(texts)]
    found = [encoder.encode([Conversation(tuple(messages))])[0] for encoder in encoders]
    if isinstance(found[0], Rejection):
        assert found[0] == found[1]
        return
    assert document(found[0]).ids.tolist() == document(found[1]).ids.tolist()
    assert found[0].loss_mask.tolist() == document(found[1]).loss_mask.tolist()
    assert (found[0].ids == START).sum() == (found[0].ids == END).sum() == len(texts)


class ConversationEncoderCache:
    """Hypothesis wants no fixtures; one encoder an engine is enough."""

    made: dict[str, ConversationEncoder] = {}  # noqa: RUF012

    @classmethod
    def get(cls, engine: str) -> ConversationEncoder:
        if engine == "fastokens":
            pytest.importorskip("fastokens")
        if engine not in cls.made:
            cls.made[engine] = shared_engines.load(options(engine=engine, control_tokens="escape"))
        return cls.made[engine]


FORK = """
import os, sys
from openrecipes.data.conversation import Conversation, Message
from openrecipes.data.encode import ConversationEncoder, EncodeOptions
chat = Conversation((Message("user", "q"), Message("assistant", "a")))
options = EncodeOptions(tokenizer=sys.argv[1])
before = ConversationEncoder(options).encode([chat])[0].ids.tolist()
child = os.fork()
if child == 0:
    found = ConversationEncoder(options).encode([chat] * 3)[2].ids.tolist()
    os._exit(0 if found == before else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_process_forked_from_one_that_has_an_encoder_makes_its_own():
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK, str(assets.qwen3_5_checkpoint())]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
