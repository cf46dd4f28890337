from __future__ import annotations

import pytest
from chats import PATIENT
from hypothesis import given
from hypothesis import strategies as st

from openrecipes.data.conversation import Conversation, Message, Rejection, RejectionKind, read_conversation

EXPECTED = Conversation((Message("user", "q"), Message("assistant", "a")))
MESSAGES = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]


@pytest.mark.parametrize(
    "record",
    [
        {"messages": MESSAGES},
        {"messages": tuple(MESSAGES), "id": 3, "prompt": "another column"},
        {"messages": [one | {"reasoning_content": None, "tool_calls": None, "name": None} for one in MESSAGES]},
        {
            "messages": [
                {"role": one["role"], "content": [{"type": "text", "text": one["content"]}]} for one in MESSAGES
            ]
        },
        {"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]},
        {"conversations": [{"from": "user", "value": "q"}, {"from": "assistant", "value": "a"}], "system": ""},
        {"prompt": "q", "completion": "a"},
        {"prompt": MESSAGES[:1], "completion": MESSAGES[1:]},
        {"messages": None, "conversations": None, "prompt": "q", "completion": "a", "tools": None},
        {"messages": MESSAGES, "tools": "[]"},
    ],
)
def test_every_shape_gives_the_same_conversation(record):
    assert read_conversation(record) == EXPECTED


def test_a_system_column_stands_in_front():
    assert read_conversation({"system": "s", "messages": MESSAGES}) == Conversation(
        (Message("system", "s"), *EXPECTED.messages)
    )


@pytest.mark.parametrize("key", ["reasoning_content", "thinking", "reasoning"])
def test_reasoning_is_read_under_the_names_that_transformers_reads(key):
    found = read_conversation({"messages": [MESSAGES[0], MESSAGES[1] | {key: "r"}]})
    assert isinstance(found, Conversation)
    assert found.messages[1].reasoning_content == "r"
    assert found.messages[1].to_template() == {
        "role": "assistant",
        "content": "a",
        "thinking": "r",
        "reasoning_content": "r",
    }


def test_tool_calls_and_tools_are_kept_whole_null_included():
    call = {"type": "function", "function": {"name": "f", "arguments": {"x": [1, 2.5, None], "y": "ü"}}}
    tool = {"type": "function", "function": {"name": "f", "parameters": {"default": None}}}
    found = read_conversation(
        {
            "messages": [
                MESSAGES[0],
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "content": "", "name": "f", "tool_call_id": "1"},
                MESSAGES[1],
            ],
            "tools": [tool],
        }
    )
    assert isinstance(found, Conversation)
    assert found.messages[1] == Message("assistant", "", tool_calls=(call,))
    assert found.messages[2] == Message("tool", "", name="f", tool_call_id="1")
    assert found.tools == (tool,)


def test_sharegpt_calls_and_observations():
    found = read_conversation(
        {
            "conversations": [
                {"from": "human", "value": "q"},
                {"from": "function_call", "value": '{"name": "f", "arguments": {"x": 1}}'},
                {"from": "observation", "value": "3"},
                {"from": "gpt", "value": "a"},
            ],
            "tools": '[{"name": "f"}]',
        }
    )
    assert isinstance(found, Conversation)
    assert [message.role for message in found.messages] == ["user", "assistant", "tool", "assistant"]
    assert found.messages[1].tool_calls == ({"type": "function", "function": {"name": "f", "arguments": {"x": 1}}},)
    assert found.tools == ({"name": "f"},)


@pytest.mark.parametrize(("value", "trained"), [(None, 1), (1, 1), (True, 1), (0, 0), (False, 0), (2, 0), (0.5, 0)])
def test_only_a_step_loss_mask_of_one_is_trained(value, trained):
    found = read_conversation({"messages": [MESSAGES[0], MESSAGES[1] | {"step_loss_mask": value}]})
    assert isinstance(found, Conversation)
    assert found.messages[1].step_loss_mask == trained


def nested(depth):
    found = {}
    for _ in range(depth):
        found = {"x": found}
    return found


def one(**message):
    return {"messages": [message, MESSAGES[1]]}


@pytest.mark.parametrize(
    ("record", "kind", "says"),
    [
        ({}, "no_messages", "among the keys: none"),
        ({"text": "plain"}, "no_messages", "`text`"),
        ({"messages": []}, "no_messages", "empty"),
        ({"prompt": "q"}, "no_messages", "completion"),
        (one(role="developer", content="x"), "bad_role", "message 0: role 'developer'"),
        (one(content="x"), "bad_role", "None"),
        (one(role=["user"], content="x"), "bad_role", "user"),
        (one(**{"from": "bing", "value": "x"}), "bad_role", "bing"),
        (one(role="user", content=""), "empty_message", "message 0: the user's text"),
        (one(role="user", content=None), "empty_message", "message 0"),
        (one(role="user", content=" \n\u3000"), "empty_message", "message 0"),
        (one(role="system", content=""), "empty_message", "system"),
        (one(role="assistant", content="", reasoning_content="r"), "empty_message", "assistant"),
        (one(role="assistant", content="", tool_calls=[]), "empty_message", "assistant"),
        (one(role="user", content=3), "bad_type", "found int, expected a list"),
        (one(role="user", content={"text": "x"}), "bad_type", "found dict"),
        (one(role="user", content=[{"type": "image", "image": "x.png"}]), "bad_type", "content part"),
        (one(role="user", content="half \ud83d"), "bad_type", "character 5 is half of a surrogate pair"),
        (one(role="assistant", content="x", reasoning_content=1), "bad_type", "reasoning"),
        (one(role="assistant", content="x", tool_calls="f()"), "bad_type", "tool_calls"),
        (one(role="assistant", content="x", tool_calls=["f"]), "bad_type", "tool call"),
        (one(role="assistant", content="x", tool_calls=[{"f": "\udc00"}]), "bad_type", "surrogate"),
        (one(role="assistant", content="x", step_loss_mask="0"), "bad_type", "step_loss_mask"),
        (one(**{"from": "function_call", "value": "f(1)"}), "bad_type", "no JSON call"),
        ({"messages": "hello"}, "bad_type", "messages: found str"),
        ({"messages": ["hello"]}, "bad_type", "message 0"),
        ({"messages": MESSAGES, "tools": "{"}, "bad_type", "tools"),
        ({"messages": MESSAGES, "tools": {"name": "f"}}, "bad_type", "tools"),
        ({"messages": MESSAGES, "tools": ["f"]}, "bad_type", "tools"),
        ({"messages": MESSAGES, "tools": [nested(200)]}, "bad_type", "deeper than 100"),
        ({"messages": MESSAGES, "system": 3}, "bad_type", "system"),
    ],
)
def test_what_is_no_conversation_is_rejected_with_its_reason(record, kind, says):
    found = read_conversation(record)
    assert isinstance(found, Rejection)
    assert found.kind is RejectionKind(kind)
    assert says in found.detail


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from(["user", "assistant", "tool"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["messages", "conversations", "prompt", "role", "from", "content", "value", "tool_calls"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@PATIENT
@given(st.dictionaries(st.sampled_from(["messages", "conversations", "prompt", "completion", "system"]), JSON))
def test_any_json_is_a_conversation_or_a_rejection(record):
    found = read_conversation(record)
    assert isinstance(found, Conversation | Rejection)
    if isinstance(found, Conversation):
        assert found.messages
        assert all(message.role in ("system", "user", "assistant", "tool") for message in found.messages)
