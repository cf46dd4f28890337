"""What slime's flags mean for the fields of a recipe, defaults and forced values included.

The defaults are those of the two parsers that `openrecipes.engines.slime` names.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from openrecipes.engines.flag_values import FlagValues, Value, product, quotient
from openrecipes.engines.flags import Flags
from openrecipes.engines.interface import Reading, Setting

if TYPE_CHECKING:
    from openrecipes.recipe.fields import Recipe

SWITCHES = frozenset(
    {
        "--sequence-parallel",
        "--fp16",
        "--bf16",
        "--use-dynamic-batch-size",
        "--optimizer-cpu-offload",
        "--offload-train",
        "--fine-grained-activation-offloading",
        "--colocate",
        "--debug-train-only",
        "--calculate-per-token-loss",
        "--disable-compute-advantages-and-returns",
        "--use-distributed-optimizer",
        "--use-precision-aware-optimizer",
        "--accumulate-allreduce-grads-in-fp32",
        "--attention-softmax-in-fp32",
    }
)
_OFFLOADS = ("--optimizer-cpu-offload", "--offload-train", "--fine-grained-activation-offloading")


class SlimeFields:
    """One command's flags beside one recipe's fields; `read` compares nothing, it only lays them side by side."""

    def __init__(self, flags: Flags, recipe: Recipe) -> None:
        self._flags = FlagValues(flags)
        self._recipe = recipe
        self._settings: list[Setting] = []
        self._open: list[tuple[str, str]] = []

    def read(self) -> Reading:
        """Every field that slime's command decides."""
        recipe, layout = self._recipe, self._recipe.layout
        nodes, per_node = self._flags.number("--actor-num-nodes", 1), self._flags.number("--actor-num-gpus-per-node", 8)
        tp = self._flags.number("--tensor-model-parallel-size", 1)
        pp = self._flags.number("--pipeline-model-parallel-size", 1)
        cp = self._flags.number("--context-parallel-size", 1)
        gpus = product(nodes, per_node)
        self._put("gpu.count", recipe.gpu.count, gpus)
        self._put("gpu.per_node", recipe.gpu.per_node, per_node)
        self._put("layout.tp", layout.tp, tp)
        self._put("layout.pp", layout.pp, pp)
        self._put("layout.cp", layout.cp, cp)
        self._put("layout.ep", layout.ep, self._flags.number("--expert-model-parallel-size", 1))
        self._put("layout.etp", layout.etp, self._expert_tensor_parallel(tp))
        self._put("layout.vpp", layout.vpp, self._virtual_stages())
        self._put("layout.sequence_parallel", layout.sequence_parallel, self._sequence_parallel(tp))
        self._layer_split()
        self._put(
            "layout.max_tokens_per_gpu", layout.max_tokens_per_gpu, self._flags.number("--max-tokens-per-gpu", None)
        )
        self._recompute()
        self._offload()
        self._dispatcher()
        self._put("workload.precision", recipe.workload.precision, self._precision())
        batch = self._global_batch(gpus, (tp, pp, cp))
        self._put("workload.global_batch", recipe.workload.global_batch, batch)
        self._put("layout.rows_per_microbatch", layout.rows_per_microbatch, self._rows_per_microbatch(cp))
        self._put("result.steps_per_run", recipe.result.steps_per_run, self._steps(batch))
        return Reading(settings=tuple(self._settings), open=tuple(self._open), problems=tuple(self._flags.problems))

    def _put(self, field: str, stated: object, value: Value) -> None:
        if value.open is not None:
            self._open.append((field, value.open))
            return
        self._settings.append(
            Setting(
                field=field,
                stated=stated,
                found=value.value,
                because=value.because,
                at=value.at,
                certain=value.certain,
            )
        )

    def _expert_tensor_parallel(self, tp: Value) -> Value:
        """Megatron's default for ETP is TP."""
        etp = self._flags.number("--expert-tensor-parallel-size", None)
        if etp.open is None and etp.value is None:
            return dataclasses.replace(tp, because=f"{etp.because}, which means TP", certain=etp.certain)
        return etp

    def _virtual_stages(self) -> Value:
        for flag in ("--num-layers-per-virtual-pipeline-stage", "--pipeline-model-parallel-layout"):
            if self._flags.given(flag):
                return Value(open=f"{flag} needs the model's layers to become VPP")
        return self._flags.number("--num-virtual-stages-per-pipeline-rank", 1)

    def _sequence_parallel(self, tp: Value) -> Value:
        """Megatron turns sequence parallel off at TP 1."""
        given = self._flags.switch("--sequence-parallel")
        if given.value and tp.open is not None:
            return Value(open=tp.open)
        if given.value and tp.value == 1:
            return dataclasses.replace(given, value=False, because=f"{given.because} at TP 1, where it is turned off")
        return given

    def _layer_split(self) -> None:
        split = self._recipe.layout.layer_split
        if self._flags.given("--pipeline-model-parallel-layout"):
            self._open.append(("layout.layer_split", "--pipeline-model-parallel-layout is not read"))
            return
        first = self._flags.number("--decoder-first-pipeline-num-layers", None)
        last = self._flags.number("--decoder-last-pipeline-num-layers", None)
        stated_first, stated_last = (None, None) if split is None or len(set(split)) == 1 else (split[0], split[-1])
        self._put("layout.layer_split", stated_first, first)
        self._put("layout.layer_split", stated_last, last)

    def _recompute(self) -> None:
        stated = self._recipe.layout.recompute
        for name, value in (
            ("granularity", self._flags.text("--recompute-granularity", None)),
            ("method", self._flags.text("--recompute-method", None)),
            ("num_layers", self._flags.number("--recompute-num-layers", None)),
        ):
            self._put(f"layout.recompute.{name}", getattr(stated, name, None), value)

    def _offload(self) -> None:
        """An entry describes the offload in words, so only whether there is one is compared."""
        stated = "some" if self._recipe.layout.offload else None
        given = next((flag for flag in map(self._flags.given, _OFFLOADS) if flag), None)
        layers = self._flags.number("--cpu-offloading-num-layers", 0)
        if given:
            value = Value(value="some", because=f"`{given.text}`", at=given.at)
        elif layers.open is None and layers.value:
            value = dataclasses.replace(layers, value="some")
        else:
            value = dataclasses.replace(layers, value=None, because="no offload flag")
        self._put("layout.offload", stated, value)

    def _dispatcher(self) -> None:
        """slime runs Megatron's default dispatcher, allgather, as alltoall; a dense model has none."""
        stated = self._recipe.layout.dispatcher
        value = self._flags.text("--moe-token-dispatcher-type", "allgather")
        if stated is None and value.at is None:
            return
        if value.value == "allgather":
            value = dataclasses.replace(value, value="alltoall", because=f"{value.because}, run by slime as alltoall")
        self._put("layout.dispatcher", "alltoall" if stated == "allgather" else stated, value)

    def _precision(self) -> Value:
        """slime sets BF16 itself unless `--fp16` is given; FP8 comes with `--fp8-format`."""
        fp8, fp16 = self._flags.text("--fp8-format", None), self._flags.switch("--fp16")
        if fp8.at is not None:
            return dataclasses.replace(fp8, value="fp8")
        if fp16.value:
            return dataclasses.replace(fp16, value="fp16")
        return dataclasses.replace(fp16, value="bf16", because="slime sets BF16 unless --fp16 is given")

    def _global_batch(self, gpus: Value, model_parallel: tuple[Value, ...]) -> Value:
        """Given, or the rollout over its steps; else micro-batch size * DP, with DP = GPUs / (TP * PP * CP)."""
        given = self._flags.number("--global-batch-size", None)
        if given.open or given.value is not None:
            return given
        steps = self._flags.number("--num-steps-per-rollout", None)
        if steps.open or steps.value is not None:
            rollout = product(
                self._flags.number("--rollout-batch-size", None), self._flags.number("--n-samples-per-prompt", 1)
            )
            return quotient(rollout, steps)
        dp = quotient(gpus, product(*model_parallel))
        return product(self._flags.number("--micro-batch-size", 1), dp)

    def _rows_per_microbatch(self, cp: Value) -> Value:
        """Rows have one length, so first-fit packing puts cap // row_tokens of them into a micro-batch, at least one.

        The cap is max_tokens_per_gpu * CP; a row longer than it gets a micro-batch of its own.
        """
        if not self._flags.switch("--use-dynamic-batch-size").value:
            return self._flags.number("--micro-batch-size", 1)
        cap = product(self._flags.number("--max-tokens-per-gpu", None), cp)
        if cap.open is not None:
            return cap
        row_tokens = self._recipe.workload.row_tokens
        rows = max(1, cap.number // row_tokens)
        if rows > 1 and self._recipe.workload.global_batch % (self._recipe.layout.dp * rows):
            return Value(open=f"{rows} rows fit a micro-batch, but slime splits some to give each DP rank as many")
        return dataclasses.replace(cap, value=rows, because=f"{cap.because}, {row_tokens} tokens a row")

    def _steps(self, batch: Value) -> Value:
        """num_rollout * rollout_batch_size * n_samples_per_prompt // global_batch."""
        rollouts = self._flags.number("--num-rollout", None)
        if rollouts.open is None and rollouts.value is None:
            return Value(open="without --num-rollout the number of steps depends on the rows of the data")
        size, samples = (
            self._flags.number("--rollout-batch-size", None),
            self._flags.number("--n-samples-per-prompt", 1),
        )
        return quotient(product(rollouts, size, samples), batch)
