"""Made conversations: everything that moves a mask, drawn by hypothesis."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from openrecipes.data.conversation import Conversation, Message

# Loaded machines are slow, and their first look at Unicode slower still; no test is about time.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

# White space at the edges, think blocks and tool tags in any order, and characters that NFC composes or takes apart.
_PIECES = st.sampled_from(
    [
        *("\n", "\n\n", " ", "\t", "\r\n", "\u3000", "<think>", "</think>", "<think>\n", "\n</think>\n\n"),
        *("<tool_response>", "</tool_response>", "<tool_call>", "assistant\n", "<|im_", "|>", "word", "1", "..."),
        *(
            "e\u0301",
            "\u0958",
            "\ufb1d",
            "\U0001d160",
            "\u0301",
            "\u2adc",
            "\u0344",
            "\u1100\u1161",
            "👩‍👩‍👧",
            "天空",
            "\x00",
        ),
    ]
)
TEXTS = st.lists(_PIECES | st.text(max_size=6), max_size=6).map("".join)
_NAMES = st.sampled_from(["f", "get_weather", "天气"])
_VALUES = st.none() | st.booleans() | st.integers(-5, 5) | TEXTS | st.lists(TEXTS, max_size=2)
_CALLS = st.fixed_dictionaries({"name": _NAMES, "arguments": st.dictionaries(_NAMES, _VALUES, max_size=2)}).map(
    lambda call: {"type": "function", "function": call}
)
_TOOLS = st.fixed_dictionaries({"type": st.just("function"), "function": st.fixed_dictionaries({"name": _NAMES})})


@st.composite
def _turns(draw: st.DrawFn) -> list[Message]:
    """A question and what follows it: calls with one or more answers each, and the answer, or none."""
    messages = [Message("user", draw(TEXTS))]
    for _ in range(draw(st.integers(0, 2))):
        calls = tuple(draw(st.lists(_CALLS, min_size=1, max_size=2)))
        messages.append(Message("assistant", draw(TEXTS), reasoning_content=draw(st.none() | TEXTS), tool_calls=calls))
        messages += [Message("tool", draw(TEXTS)) for _ in range(draw(st.integers(0, 3)))]
    if draw(st.booleans()) or len(messages) == 1:
        trained = draw(st.sampled_from([1, 1, 1, 0]))
        reasoning = draw(st.none() | TEXTS)
        messages.append(Message("assistant", draw(TEXTS), reasoning_content=reasoning, step_loss_mask=trained))
    return messages


@st.composite
def conversations(draw: st.DrawFn, *, plain: bool = False) -> Conversation:
    """A conversation; a `plain` one has neither tools nor calls."""
    messages: list[Message] = []
    if draw(st.booleans()):
        messages.append(Message("system", draw(TEXTS)))
    if draw(st.integers(0, 9)) == 0:
        messages.append(Message("assistant", draw(TEXTS)))
    for _ in range(draw(st.integers(1, 3))):
        messages += draw(_turns())
    if draw(st.integers(0, 4)) == 0:
        messages.append(Message("user", draw(TEXTS)))
    if plain:
        return Conversation(tuple(Message(*_plain(one)) for one in messages if one.role != "tool"))
    tools = draw(st.none() | st.lists(_TOOLS, min_size=1, max_size=2).map(tuple))
    return Conversation(tuple(messages), tools)


def _plain(message: Message) -> tuple[str, str, str | None, tuple, int]:
    return message.role, message.content, message.reasoning_content, (), message.step_loss_mask
