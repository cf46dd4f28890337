"""The arguments that were really in force in a run, and the sizes an entry states for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from openrecipes.errors import ContentError, Finding, Severity
from openrecipes.measure.evidence import listed
from openrecipes.recipe.evidence import Arm, Evidence
from openrecipes.recipe.fields import Recipe

NOT_SET = "not set"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ResolvedArguments:
    """What was in force in one run: the engine, the versions of the software, and each argument."""

    engine: str
    versions: Mapping[str, str]
    arguments: Mapping[str, Any]

    def flat(self) -> dict[str, Any]:
        """All of it under one kind of name: `engine`, `versions.torch`, and the arguments as they are."""
        versions = {f"versions.{name}": value for name, value in self.versions.items()}
        return {"engine": self.engine, **versions, **self.arguments}


def parse_resolved_arguments(content: bytes, path: Path) -> ResolvedArguments:
    """Read the JSON of a run's resolved arguments; `path` names the place of an error.

    Raises:
        ContentError: the content is not that JSON.
    """
    try:
        return TypeAdapter(ResolvedArguments).validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        finding = Finding(
            id="M005",
            severity=Severity.ERROR,
            message=f"not the resolved arguments of a run: {first['msg']}",
            remedy='expected {"engine": text, "versions": {name: text}, "arguments": {name: value}}',
            path=path,
            field=".".join(map(str, first["loc"])) or None,
        )
        raise ContentError([finding]) from None


def resolved_of(evidence: Evidence, arm: Arm, run: int = 0) -> ResolvedArguments | None:
    """A run's resolved arguments; None where the manifest lists none.

    Raises:
        ContentError: the file was altered or cannot be understood.
    """
    file = listed(evidence, "resolved_arguments", arm, run)
    return None if file is None else parse_resolved_arguments(evidence.read(file), evidence.folder / file.path)


def stated_arguments(recipe: Recipe) -> tuple[tuple[str, str, Any], ...]:
    """What an entry states about its run, as (field, Megatron's argument, value)."""
    layout, recompute = recipe.layout, recipe.layout.recompute
    return (
        ("gpu.count", "world_size", recipe.gpu.count),
        ("layout.tp", "tensor_model_parallel_size", layout.tp),
        ("layout.pp", "pipeline_model_parallel_size", layout.pp),
        ("layout.vpp", "virtual_pipeline_model_parallel_size", layout.vpp if layout.vpp > 1 else None),
        ("layout.cp", "context_parallel_size", layout.cp),
        ("layout.ep", "expert_model_parallel_size", layout.ep),
        ("layout.etp", "expert_tensor_parallel_size", layout.etp),
        ("layout.dp", "data_parallel_size", layout.dp),
        ("layout.sequence_parallel", "sequence_parallel", layout.sequence_parallel),
        ("layout.rows_per_microbatch", "micro_batch_size", layout.rows_per_microbatch),
        ("layout.recompute", "recompute_granularity", recompute.granularity if recompute else None),
        ("layout.recompute", "recompute_method", recompute.method if recompute else None),
        ("layout.recompute", "recompute_num_layers", recompute.num_layers if recompute else None),
        ("layout.dispatcher", "moe_token_dispatcher_type", layout.dispatcher),
        ("workload.global_batch", "global_batch_size", recipe.workload.global_batch),
        ("workload.row_tokens", "seq_length", recipe.workload.row_tokens),
        ("result.steps_per_run", "train_iters", recipe.result.steps_per_run),
        ("dataset.rows_sha256", "rows_sha256", recipe.dataset.rows_sha256),
    )
