from __future__ import annotations

import hashlib
import json

import pytest

from openrecipes.data.checkpoint import AddedToken, Checkpoint
from openrecipes.errors import ContentError, UsageError

TOKENIZER = {
    "added_tokens": [
        {"id": 7, "content": "<|im_end|>", "special": True},
        {"id": 8, "content": "<think>", "special": False},
    ]
}
CONFIG = {"chat_template": "from the configuration", "eos_token": "<|im_end|>", "bos_token": None}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(CONFIG))
    return tmp_path


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def configure(folder, **changes):
    (folder / "tokenizer_config.json").write_text(json.dumps(CONFIG | changes))


def test_a_checkpoint_is_its_tokenizer_and_template_with_their_hashes(folder):
    found = Checkpoint.read(folder)
    assert found.tokenizer_sha256 == sha256((folder / "tokenizer.json").read_bytes())
    assert found.template == "from the configuration"
    assert found.template_sha256 == sha256(b"from the configuration")
    assert found.added_tokens[1] == AddedToken(id=8, text="<think>", special=False)
    assert found.special_tokens == {"<|im_end|>": 7}
    assert found.named_tokens == {"eos_token": "<|im_end|>"}


def test_a_template_file_stands_above_the_configuration(folder):
    (folder / "chat_template.jinja").write_text("from the file: ü", encoding="utf-8")
    found = Checkpoint.read(folder)
    assert found.template == "from the file: ü"
    assert found.template_sha256 == sha256("from the file: ü".encode())


def test_of_named_templates_the_default_one_is_taken(folder):
    named = [{"name": "rag", "template": "no"}, {"name": "default", "template": "yes"}]
    configure(folder, chat_template=named)
    assert Checkpoint.read(folder).template == "yes"


def test_tokens_written_as_objects_are_read(folder):
    configure(folder, eos_token={"content": "</s>", "lstrip": False})
    assert Checkpoint.read(folder).named_tokens == {"eos_token": "</s>"}


def test_the_hash_that_is_expected_is_compared(folder):
    found = Checkpoint.read(folder)
    found.require_tokenizer_sha256(found.tokenizer_sha256.upper())
    with pytest.raises(UsageError, match=f"has sha256 {found.tokenizer_sha256}, expected 00ff"):
        found.require_tokenizer_sha256("00ff")


def test_a_folder_that_is_not_there(folder):
    with pytest.raises(UsageError, match="does not exist"):
        Checkpoint.read(folder / "nowhere")


def test_a_folder_without_a_tokenizer(folder):
    (folder / "tokenizer.json").unlink()
    with pytest.raises(UsageError, match=r"has no tokenizer\.json"):
        Checkpoint.read(folder)


@pytest.mark.parametrize("name", ["vocab.json", "merges.txt", "tokenizer.model", "qwen.tiktoken"])
def test_a_slow_tokenizer_is_named_with_the_way_out(folder, name):
    (folder / "tokenizer.json").rename(folder / name)
    with pytest.raises(UsageError, match=rf"only a slow tokenizer \({name}\).*save_pretrained"):
        Checkpoint.read(folder)


@pytest.mark.parametrize("template", [None, "", [], [{"name": "rag", "template": "x"}], 3])
def test_a_missing_template(folder, template):
    configure(folder, chat_template=template)
    with pytest.raises(UsageError, match=r"has no chat template.*chat_template\.jinja"):
        Checkpoint.read(folder)


def test_no_configuration_and_no_template_file(folder):
    (folder / "tokenizer_config.json").unlink()
    with pytest.raises(UsageError, match="has no chat template"):
        Checkpoint.read(folder)
    (folder / "chat_template.jinja").write_text("t")
    assert Checkpoint.read(folder).named_tokens == {}


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("data", [b"{", b"\xff\xfe", b"[]", b""])
def test_a_damaged_file_is_named(folder, name, data):
    (folder / name).write_bytes(data)
    with pytest.raises(ContentError, match=name):
        Checkpoint.read(folder)


def test_a_template_that_is_not_utf_8_is_named(folder):
    (folder / "chat_template.jinja").write_bytes(b"\xff")
    with pytest.raises(ContentError, match=r"chat_template\.jinja"):
        Checkpoint.read(folder)


def test_tokens_that_only_the_configuration_has_are_an_error_because_transformers_would_add_them(folder):
    configure(folder, added_tokens_decoder={"7": {"content": "<|im_end|>"}, "8": "<think>"})
    assert Checkpoint.read(folder)
    configure(folder, added_tokens_decoder={"7": {"content": "<|im_end|>"}, "9": {"content": "<new>"}})
    with pytest.raises(ContentError, match=r"adds tokens that tokenizer\.json lacks: <new>"):
        Checkpoint.read(folder)
