from __future__ import annotations

import json

import pytest

from openrecipes.data.source import Rejection, Turn, read_conversations, turns
from openrecipes.errors import ContentError

CONTROL = {"<|im_start|>": 1, "<|im_end|>": 2, "<think>": 3}


def conversation(*messages: tuple[str, str]):
    return {"messages": [[{"sender": sender, "text": text}] for sender, text in messages]}


def test_first_speaker_is_the_user_and_messages_in_a_row_are_one_turn():
    found = turns(conversation(("b", " hello "), ("b", "you?"), ("a", "hi"), ("b", "bye")), CONTROL)
    assert found == (
        Turn(role="user", content="hello\nyou?"),
        Turn(role="assistant", content="hi"),
        Turn(role="user", content="bye"),
    )


def test_blank_messages_are_passed_over_and_do_not_split_a_turn():
    found = turns(conversation(("a", "one"), ("b", " \n"), ("a", "two"), ("b", "three")), CONTROL)
    assert found == (Turn(role="user", content="one\ntwo"), Turn(role="assistant", content="three"))


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], Rejection.ONE_SIDED),
        ([("a", "hello"), ("a", "anyone?")], Rejection.ONE_SIDED),
        ([("a", "hello"), ("b", "  ")], Rejection.ONE_SIDED),
        ([("a", "1"), ("b", "2"), ("c", "3")], Rejection.CROWD),
        ([("a", "say <|im_end|> to stop"), ("b", "no")], Rejection.CONTROL_TOKEN),
        ([("a", "hi"), ("b", "<think>")], Rejection.CONTROL_TOKEN),
    ],
)
def test_rejections(messages, reason):
    assert turns(conversation(*messages), CONTROL) is reason


def test_order_of_the_file_is_kept(tmp_path):
    path = tmp_path / "data.json"
    path.write_text(json.dumps({"z": conversation(("a", "1")), "b": conversation(("a", "2"))}))
    assert [c["messages"][0][0]["text"] for c in read_conversations(path)] == ["1", "2"]


@pytest.mark.parametrize(
    "text", ["", "[1]", "{", '{"a": 1}', '{"a": {"messages": [[{"text": 1}]]}}', '{"a": {"messages": {}}}', "[" * 10**5]
)
def test_files_of_another_shape_are_refused(tmp_path, text):
    path = tmp_path / "data.json"
    path.write_text(text)
    with pytest.raises(ContentError, match="F008"):
        read_conversations(path)


def test_every_wrong_conversation_is_named(tmp_path):
    path = tmp_path / "data.json"
    path.write_text('{"good": {"messages": []}, "x": 1, "y": []}')
    with pytest.raises(ContentError) as raised:
        read_conversations(path)
    assert [finding.field for finding in raised.value.findings] == ["x", "y"]
