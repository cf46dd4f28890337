"""Component tests: one piece of Megatron-Core against the same formula in FP64, forward and backward.

Each test has a bound taken from error analysis, and controls: the piece with one thing left out, whose
error must fall outside the bound. Only numbers are written; whoever reads the file judges them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from megatron.core.ssm.gated_delta_net import torch_chunk_gated_delta_rule

from openrecipes.rehearse.cpu_device import GATED_DELTA_CHUNK, l2norm
from openrecipes.rehearse.records import write_json

Inputs = Mapping[str, torch.Tensor]
Rule = Callable[[Inputs], torch.Tensor]

# Not a multiple of the chunk: the last chunk is padded. Several chunks: the state is carried.
_SHAPE = {"rows": 2, "tokens": 2 * GATED_DELTA_CHUNK + 5, "heads": 3, "key_width": 8, "value_width": 12}
_FP32_UNIT_ROUNDOFF = 2.0**-24


def write_component_results(path: Path) -> None:
    """Run every component test and write the results, as docs/design.md describes them."""
    write_json(path, {"format_version": 1, "tests": [gated_delta_rule()]})


def gated_delta_rule() -> dict[str, Any]:
    """Megatron's chunked gated delta rule in FP32 against a token-by-token recurrence in FP64.

    The error is the largest relative L2 error among the output and the gradients of the five inputs.
    """
    inputs = _inputs()
    weight = torch.randn(_like_output(), generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    truth = _output_and_gradients(_recurrence, inputs, weight)
    chain = _SHAPE["tokens"] * _SHAPE["key_width"]

    def error(rule: Rule) -> float:
        single = {name: value.float() for name, value in inputs.items()}
        found = _output_and_gradients(rule, single, weight.float())
        return max(_relative_error(a, b) for a, b in zip(found, truth, strict=True))

    controls = {
        "decay dropped": lambda x: _chunked({**x, "g": x["g"] * 0}),
        "beta dropped": lambda x: _chunked({**x, "beta": x["beta"] * 0 + 1}),
        "state not carried across chunks": _chunks_apart,
        "query not scaled": lambda x: _chunked({**x, "query": x["query"] * _SHAPE["key_width"] ** 0.5}),
        "key one percent too long": lambda x: _chunked({**x, "key": x["key"] * 1.01}),
    }
    return {
        "test": "gated delta rule, forward and backward",
        "implementation": f"megatron.core.ssm.gated_delta_net.torch_chunk_gated_delta_rule, chunk {GATED_DELTA_CHUNK}",
        "shape": ", ".join(f"{name} {size}" for name, size in _SHAPE.items()),
        "dtype": "float32 against float64",
        "bound": chain * _FP32_UNIT_ROUNDOFF / (1 - chain * _FP32_UNIT_ROUNDOFF),
        "bound_source": (
            "gamma_n = n u / (1 - n u) with u = 2^-24 and n = tokens x key width, the longest chain of sums behind "
            "one output; Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed. 2002, section 3.1"
        ),
        "error": error(_chunked),
        "controls": [{"name": name, "error": error(rule)} for name, rule in controls.items()],
    }


def _inputs() -> Inputs:
    """FP64 values that FP32 holds exactly, so that both sides see the same numbers."""
    generator = torch.Generator().manual_seed(1)
    rows, tokens, heads = _SHAPE["rows"], _SHAPE["tokens"], _SHAPE["heads"]

    def drawn(*width: int) -> torch.Tensor:
        return torch.randn(rows, tokens, heads, *width, generator=generator)

    values = {
        "query": l2norm(drawn(_SHAPE["key_width"])),
        "key": l2norm(drawn(_SHAPE["key_width"])),
        "value": drawn(_SHAPE["value_width"]),
        "g": -0.1 * drawn().exp(),
        "beta": drawn().sigmoid(),
    }
    return {name: value.double() for name, value in values.items()}


def _like_output() -> tuple[int, ...]:
    return (_SHAPE["rows"], _SHAPE["tokens"], _SHAPE["heads"], _SHAPE["value_width"])


def _output_and_gradients(rule: Rule, inputs: Inputs, weight: torch.Tensor) -> list[torch.Tensor]:
    leaves = {name: value.clone().requires_grad_() for name, value in inputs.items()}
    output = rule(leaves)
    (output * weight).sum().backward()
    return [output.detach(), *(leaf.grad for leaf in leaves.values() if leaf.grad is not None)]


def _recurrence(x: Inputs) -> torch.Tensor:
    """S_t = e^(g_t) S_(t-1) + k_t (beta_t (v_t - k_t^T e^(g_t) S_(t-1)))^T;  o_t = q_t^T S_t / sqrt(key width).

    Source: Yang, Kautz, Hatamizadeh, Gated Delta Networks, 2024, https://arxiv.org/abs/2412.06464, eq. 10.
    """
    rows, tokens, heads, width = x["key"].shape
    state = x["key"].new_zeros(rows, heads, width, x["value"].shape[-1])
    outputs = []
    for t in range(tokens):
        key = x["key"][:, t, :, :, None]
        state = state * x["g"][:, t, :, None, None].exp()
        remembered = (key * state).sum(-2)
        change = x["beta"][:, t, :, None] * (x["value"][:, t] - remembered)
        state = state + key * change[:, :, None, :]
        outputs.append((x["query"][:, t, :, :, None] * state).sum(-2) / width**0.5)
    return torch.stack(outputs, 1)


def _chunked(x: Inputs) -> torch.Tensor:
    output, _ = torch_chunk_gated_delta_rule(
        x["query"], x["key"], x["value"], x["g"], x["beta"], chunk_size=GATED_DELTA_CHUNK
    )
    return output


def _chunks_apart(x: Inputs) -> torch.Tensor:
    pieces = zip(*(value.split(GATED_DELTA_CHUNK, 1) for value in x.values()), strict=True)
    return torch.cat([_chunked(dict(zip(x, piece, strict=True))) for piece in pieces], 1)


def _relative_error(found: torch.Tensor, truth: torch.Tensor) -> float:
    return ((found.double() - truth).norm() / truth.norm()).item()
