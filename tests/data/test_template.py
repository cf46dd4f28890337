from __future__ import annotations

import assets
import pytest
from chats import PATIENT, conversations
from hypothesis import given
from transformers.utils.chat_template_utils import render_jinja_template

from openrecipes.data import sandbox
from openrecipes.data.conversation import Conversation, Message, read_conversation
from openrecipes.data.direct import direct_renderer
from openrecipes.data.template import ChatTemplate, TemplateFailedError
from openrecipes.errors import UsageError

CHAT = Conversation((Message("user", "q"), Message("assistant", "a")))
TOKENS = {"eos_token": "<|im_end|>"}


def render(source: str, conversation: Conversation = CHAT) -> str:
    return ChatTemplate(source, TOKENS).render(conversation).text


def by_transformers(source: str, conversation: Conversation) -> str | None:
    messages = [message.to_template() for message in conversation.messages]
    tools = None if conversation.tools is None else list(conversation.tools)
    try:
        return render_jinja_template([messages], tools=tools, chat_template=source, **TOKENS)[0][0]
    except Exception:
        return None


def by_us(template: ChatTemplate, conversation: Conversation) -> str | None:
    try:
        return template.render(conversation).text
    except TemplateFailedError:
        return None


def known_templates() -> dict[str, str]:
    from openrecipes.data.checkpoint import Checkpoint

    return {
        "qwen3_5": assets.template("qwen3_5_think"),
        "qwen3": Checkpoint.read(assets.qwen3_checkpoint()).template,
        "qwen3_later": assets.template("qwen3"),
    }


@pytest.mark.parametrize("name", ["qwen3_5_think", "qwen3", "qwen2_5", "qwen3_6_training", "qwen3_instruct_2507"])
def test_a_template_gives_what_transformers_gives_refusals_included(name):
    source = assets.template(name)
    ours = ChatTemplate(source, TOKENS)
    said = []

    @PATIENT
    @given(conversations())
    def compare(conversation):
        expected = by_transformers(source, conversation)
        assert by_us(ours, conversation) == expected
        said.append(expected is not None)

    compare()
    assert any(said)


@pytest.mark.parametrize("name", ["qwen3_5", "qwen3", "qwen3_later"])
def test_the_direct_renderer_gives_what_the_template_gives(name):
    source = known_templates()[name]
    template = ChatTemplate(source, TOKENS)
    direct = direct_renderer(_sha256(source))
    assert direct is not None
    taken = []

    @PATIENT
    @given(conversations(plain=True))
    def compare(conversation):
        text = direct(conversation)
        if text is not None:
            assert text == by_us(template, conversation)
        taken.append(text is not None)

    compare()
    real = [read_conversation(record) for record in assets.chitchat(300) + assets.llamafactory()[::20]]
    for conversation in real:
        assert isinstance(conversation, Conversation)
        if (text := direct(conversation)) is not None:
            assert text == template.render(conversation).text
            taken.append(True)
    assert sum(taken) > 300


@pytest.mark.parametrize("name", ["qwen3_5", "qwen3", "qwen3_later"])
@pytest.mark.parametrize(
    "text",
    [
        "<tool_response>\n3\n</tool_response>",
        " <tool_response></tool_response>\n",
        "<tool_response>",
        "</tool_response>",
        "<think>\nr\n</think>\n\na",
        "</think>a</think>b",
        "\n\na\n\n",
    ],
)
def test_the_direct_renderer_takes_tags_in_the_text_as_the_template_does(name, text):
    source = known_templates()[name]
    direct = direct_renderer(_sha256(source))
    assert direct is not None
    answers = (Message("assistant", text), Message("assistant", text, reasoning_content=text))
    chat = Conversation((CHAT.messages[0], *answers, Message("user", text), *answers))
    assert direct(chat) == ChatTemplate(source, TOKENS).render(chat).text


def test_the_direct_renderer_leaves_tools_and_refusals_to_the_template():
    direct = direct_renderer(assets.QWEN3_5_TEMPLATE_SHA256)
    assert direct is not None
    call = {"type": "function", "function": {"name": "f", "arguments": {}}}
    assert direct(Conversation(CHAT.messages, ({"name": "f"},))) is None
    assert direct(Conversation((CHAT.messages[0], Message("assistant", "", tool_calls=(call,))))) is None
    assert direct(Conversation((*CHAT.messages, Message("tool", "3")))) is None
    assert direct(Conversation((Message("assistant", "a"),))) is None
    assert direct(Conversation((*CHAT.messages, Message("system", "s")))) is None


def test_another_template_has_no_direct_renderer():
    assert direct_renderer("0" * 64) is None


def test_what_the_template_marks_as_generated_is_found():
    source = "{% for m in messages %}[{% if m.role == 'assistant' %}{% generation %}{{ m.content }}!{% endgeneration %}"
    source += "{% else %}{{ m.content }}{% endif %}]{% endfor %}"
    template = ChatTemplate(source, TOKENS)
    assert template.marks_generations
    found = template.render(Conversation((*CHAT.messages, *CHAT.messages)))
    assert [found.text[start:end] for start, end in found.generations] == ["a!", "a!"]
    assert template.render(CHAT).generations == ((4, 6),)


def test_named_tokens_tojson_and_loop_controls_are_those_of_transformers():
    source = "{{ eos_token }}{% for m in messages %}{{ m | tojson }}{% break %}{% endfor %}"
    assert render(source, Conversation((Message("user", "<é>"),))) == '<|im_end|>{"role": "user", "content": "<é>"}'


def test_every_name_that_transformers_gives_a_template_is_there():
    source = "{{ documents is none }} {{ tools is none }} {{ add_generation_prompt }} {{ other is defined }}"
    assert render(source) == by_transformers(source, CHAT) == "True True False False"


def test_white_space_around_blocks_goes_as_it_goes_in_transformers():
    source = "a\n  {% if true %}\n  b\n  {% endif %}\nc\n"
    assert render(source) == by_transformers(source, CHAT) == "a\n  b\nc"


def test_a_refusal_is_told_in_the_templates_own_words():
    with pytest.raises(TemplateFailedError, match=r"^no such thing\.$"):
        render("{{ raise_exception('no such thing.') }}")


def test_an_error_of_the_template_is_a_refusal():
    with pytest.raises(TemplateFailedError, match="TypeError"):
        render("{{ 'a' + 1 }}")


def test_a_template_that_is_no_jinja2_is_refused_with_its_line():
    with pytest.raises(UsageError, match="line 2"):
        ChatTemplate("\n{% for %}", TOKENS)


def test_a_template_may_not_depend_on_the_day():
    with pytest.raises(TemplateFailedError, match="today"):
        render("{{ strftime_now('%Y') }}")


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages.__class__.__mro__ }}{{ ''.__class__.__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ namespace(_x=1) }}",
        "{% set n = namespace(x=1) %}{% set n._y = 2 %}",
        "{{ raise_exception.__globals__ }}{{ raise_exception.__globals__['x'] }}",
        "{{ dict.__class__('x', (), {}) }}",
    ],
)
def test_a_template_cannot_leave_the_sandbox(source):
    with pytest.raises(TemplateFailedError):
        render(source)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", "steps"),
        ("{% macro f(n) %}{{ f(n) }}{{ f(n) }}{% endmacro %}{{ f(1) }}", "without end|steps"),
        ("{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}", "steps"),
        ("{% for a in range(99999) recursive %}{{ loop(range(99999)) }}{% endfor %}", "steps|without end"),
        ("{% for a in 'x' | batch(1) | map('list') %}{% endfor %}{{ 'x' * 999999999 }}", "characters"),
        ("{{ [0] * 999999999 }}", "characters"),
        ("{{ 9 ** 999999999 }}", "power"),
        ("{{ 'x'.ljust(999999999) }}", "characters"),
        ("{% set n = namespace(x='xx') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}", "characters"),
        ("{% set n = namespace(x='xx') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}", "characters"),
        ("{% set x = 'x' * 999999 %}{% for i in range(99) %}{{ x }}{% endfor %}", "characters"),
    ],
)
def test_a_template_that_would_run_or_grow_for_ever_is_stopped(source, says, monkeypatch):
    monkeypatch.setattr(sandbox, "MAX_STEPS", 100_000)
    with pytest.raises(TemplateFailedError, match=says):
        render(source)


def test_the_bounds_hold_for_one_rendering_each(monkeypatch):
    monkeypatch.setattr(sandbox, "MAX_STEPS", 10)
    template = ChatTemplate("{% for i in range(9) %}{% endfor %}", TOKENS)
    for _ in range(3):
        assert template.render(CHAT).text == ""


def _sha256(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()
