"""Reading an HF `config.json` into a `ModelShape`.

Known are the text models of Qwen3.5: `qwen3_5_moe` and `qwen3_5` (whose text part is nested under
`text_config`), and the text parts alone, `qwen3_5_moe_text` and `qwen3_5_text`. The meaning of the fields
is that of transformers' configuration classes (https://github.com/huggingface/transformers, v5.24.0,
`models/qwen3_5_moe/configuration_qwen3_5_moe.py`). Any other architecture is refused by name, and a
size that is missing is refused too: a default of some library version is not a fact about a model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from openrecipes.errors import ContentError, Finding, Severity, UsageError
from openrecipes.model.shape import DenseMlp, Experts, FullAttention, GatedDeltaNet, LayerType, ModelShape

LARGEST_FILE_BYTES = 1 << 20
NESTED = {"qwen3_5_moe": "qwen3_5_moe_text", "qwen3_5": "qwen3_5_text"}
TEXT_TYPES = frozenset(NESTED.values())
# Far above any model, and small enough that every product of sizes stays an ordinary number.
LARGEST_SIZE = 1 << 24
MOST_LAYERS = 4096


def read_config(source: Path | Mapping[str, Any]) -> ModelShape:
    """Read the `config.json` at a path, or an already parsed one.

    Raises:
        UsageError: the path is missing or no file.
        ContentError: the text is no JSON object, the architecture is unknown (A002), or fields are missing,
            of a wrong type, out of range or at odds with each other (A003, all of them at once).
    """
    if isinstance(source, Mapping):
        return _Reader(None).shape(source)
    path = Path(source)
    if not path.is_file():
        found = "not a regular file" if path.exists() else "no such file"
        raise UsageError(f"{path}: {found}; expected a model's config.json")
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    return parse_config(text, path)


def parse_config(text: bytes, path: Path) -> ModelShape:
    """Read the bytes of a `config.json`; `path` only names the place of a finding.

    Raises:
        ContentError: as `read_config` does.
    """
    try:
        if len(text) > LARGEST_FILE_BYTES:
            raise ValueError(f"it is larger than {LARGEST_FILE_BYTES:,} bytes")
        config = json.loads(text)
        if not isinstance(config, dict):
            raise ValueError(f"it holds a {type(config).__name__}, not an object")
    except (ValueError, RecursionError) as error:
        cause = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        finding = _finding(path, "A001", None, f"not a config.json: {cause}", "give the model's own config.json")
        raise ContentError([finding]) from None
    return _Reader(path).shape(config)


def _finding(path: Path | None, id: str, field: str | None, message: str, remedy: str) -> Finding:
    return Finding(id=id, severity=Severity.ERROR, message=message, remedy=remedy, path=path, field=field)


def _shown(value: object) -> str:
    """A value as a message shows it: short, and without asking for the text of something huge or deep."""
    if isinstance(value, int) and abs(value) > 10**18:
        return "a number of more than 18 digits"
    if isinstance(value, (dict, list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"{value!r:.40}"


class _Reader:
    """Takes fields out of one config and keeps what is wrong with them; `prefix` is where the text part stands."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.prefix = ""
        self.config: Mapping[str, Any] = {}
        self.findings: list[Finding] = []

    def shape(self, config: Mapping[str, Any]) -> ModelShape:
        kind = self._text_part(config)
        experts = kind == "qwen3_5_moe_text"
        hidden_size = self._size("hidden_size")
        # Every field is taken before the first raise, so that one reading names all that is wrong.
        shape = ModelShape(
            model_type=kind,
            vocab_size=self._size("vocab_size"),
            hidden_size=hidden_size,
            layer_types=self._layer_types(),
            attention=FullAttention(
                heads=self._size("num_attention_heads"),
                kv_heads=self._size("num_key_value_heads"),
                head_dim=self._size("head_dim"),
                bias=self._flag("attention_bias", self.config),
            ),
            gated_delta_net=GatedDeltaNet(
                key_heads=self._size("linear_num_key_heads"),
                value_heads=self._size("linear_num_value_heads"),
                key_head_dim=self._size("linear_key_head_dim"),
                value_head_dim=self._size("linear_value_head_dim"),
                conv_kernel=self._size("linear_conv_kernel_dim"),
            ),
            mlp=self._experts() if experts else DenseMlp(width=self._size("intermediate_size")),
            tied_head=self._tied_head(config),
        )
        self._cross_check(shape)
        if self.findings:
            raise ContentError(self.findings)
        return shape

    def _text_part(self, config: Mapping[str, Any]) -> str:
        kind = config.get("model_type")
        if isinstance(kind, str) and kind in NESTED:
            self.prefix, text = "text_config.", config.get("text_config")
            if not isinstance(text, Mapping):
                self._wrong("", f"text_config is {_shown(text)}", "an object with the sizes of the text model")
                raise ContentError(self.findings)
            self.config = text
            if text.get("model_type", NESTED[kind]) != NESTED[kind]:
                self._wrong(
                    "model_type", f"model_type is {_shown(text['model_type'])}", f"`{NESTED[kind]}` inside `{kind}`"
                )
            return NESTED[kind]
        if isinstance(kind, str) and kind in TEXT_TYPES:
            self.config = config
            return kind
        known = ", ".join(f"`{name}`" for name in (*NESTED, *sorted(TEXT_TYPES)))
        message = f"architecture {_shown(kind)} is not known: its layers and weights would be a guess"
        raise ContentError([_finding(self.path, "A002", "model_type", message, f"known are {known}")])

    def _wrong(self, field: str, found: str, expected: str) -> None:
        name = f"{self.prefix}{field}".rstrip(".")
        self.findings.append(_finding(self.path, "A003", name, found, f"expected {expected}"))

    def _size(self, field: str, largest: int = LARGEST_SIZE) -> int:
        value = self.config.get(field)
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= largest:
            return value
        found = _shown(value) if field in self.config else "missing"
        self._wrong(field, f"{field} is {found}", f"a whole number from 1 to {largest:,}")
        return 1

    def _flag(self, field: str, config: Mapping[str, Any]) -> bool:
        # Absent means false for both flags in every version of the configuration classes.
        value = config.get(field, False)
        if not isinstance(value, bool):
            self._wrong(field, f"{field} is {_shown(value)}", "true or false")
        return value is True

    def _tied_head(self, config: Mapping[str, Any]) -> bool:
        inner = self._flag("tie_word_embeddings", self.config)
        if config is self.config or "tie_word_embeddings" not in config:
            return inner
        outer = self._flag("tie_word_embeddings", config)
        if outer != inner and "tie_word_embeddings" in self.config:
            self._wrong("tie_word_embeddings", f"is {inner} here and {outer} outside", "the same in both places")
        return outer

    def _layer_types(self) -> tuple[LayerType, ...]:
        layers = self._size("num_hidden_layers", MOST_LAYERS)
        found = self.config.get("layer_types")
        if found is None:
            interval = self._size("full_attention_interval", MOST_LAYERS)
            full = LayerType.FULL_ATTENTION
            return tuple(LayerType.LINEAR_ATTENTION if (i + 1) % interval else full for i in range(layers))
        known = [kind.value for kind in LayerType]
        if not isinstance(found, (list, tuple)) or any(kind not in known for kind in found):
            self._wrong("layer_types", f"layer_types is {_shown(found)}", f"a list of {' and '.join(known)}")
            return (LayerType.FULL_ATTENTION,)
        if len(found) != layers:
            self._wrong("layer_types", f"layer_types lists {len(found)} layers", f"num_hidden_layers {layers} of them")
        return tuple(LayerType(kind) for kind in found)

    def _experts(self) -> Experts:
        return Experts(
            experts=self._size("num_experts"),
            top_k=self._size("num_experts_per_tok"),
            width=self._size("moe_intermediate_size"),
            shared_width=self._size("shared_expert_intermediate_size"),
        )

    def _cross_check(self, shape: ModelShape) -> None:
        if self.findings:
            return  # sizes that are wrong by themselves say nothing about each other
        attention, gdn = shape.attention, shape.gated_delta_net
        if attention.heads % attention.kv_heads:
            found = f"{attention.heads} query heads over {attention.kv_heads} KV heads"
            self._wrong("num_key_value_heads", found, "a divisor of num_attention_heads")
        if gdn.value_heads % gdn.key_heads:
            found = f"{gdn.value_heads} value heads over {gdn.key_heads} key heads"
            self._wrong("linear_num_key_heads", found, "a divisor of linear_num_value_heads")
        if isinstance(shape.mlp, Experts) and shape.mlp.top_k > shape.mlp.experts:
            found = f"top-{shape.mlp.top_k} of {shape.mlp.experts} experts"
            self._wrong("num_experts_per_tok", found, "at most num_experts")
