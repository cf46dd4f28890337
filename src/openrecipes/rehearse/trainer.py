"""One rank of a rehearsal: build the toy, train it, leave the records."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from megatron.core import parallel_state, tensor_parallel
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
from megatron.core.num_microbatches_calculator import (
    get_num_microbatches,
    init_num_microbatches_calculator,
)
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.transformer.transformer_config import TransformerConfig

from openrecipes.data.rows import Rows, load_rows
from openrecipes.engines.rehearsal import RehearsalJob
from openrecipes.engines.steps import StepRecord
from openrecipes.errors import UsageError
from openrecipes.recipe.parallel import Layout
from openrecipes.rehearse.batches import microbatches, row_schedule, targets
from openrecipes.rehearse.faults import Faults
from openrecipes.rehearse.gradients import gradient_norms
from openrecipes.rehearse.records import environment, resolved_arguments, versions, write_json
from openrecipes.rehearse.toy_model import build_chunks, read_text_config, transformer_config
from openrecipes.rehearse.weights import Placed, fill, place

# Longer than any step of a toy, short enough for a hang to be reported while someone waits.
COLLECTIVE_TIMEOUT_MINUTES = 2


class Trainer:
    """A rank's model, optimizer and rows for one job; the process group must be initialised."""

    def __init__(self, job: RehearsalJob) -> None:
        self.job = job
        self.layout = layout = Layout.parse(job.layout)
        self.faults = Faults.parse(job.faults)
        self.rows = load_rows(Path(job.rows))
        row_tokens = self.rows.ids.shape[1]
        text = read_text_config(Path(job.model))
        if (used := len(self.rows.vocabulary)) > text["vocab_size"]:
            raise UsageError(
                f"the rows use {used} different tokens, more than the model's vocab_size {text['vocab_size']}"
            )

        _initialize_parallel_groups(layout)
        self.dp = parallel_state.get_data_parallel_world_size()
        rank = torch.distributed.get_rank()
        init_num_microbatches_calculator(rank, None, job.global_batch, layout.rows_per_microbatch, self.dp)
        tensor_parallel.model_parallel_cuda_manual_seed(1)

        self.config = transformer_config(text, layout, job.recompute)
        ddp_config = DistributedDataParallelConfig(use_distributed_optimizer=True, grad_reduce_in_fp32=True)
        optimizer_config = _optimizer_config(job)
        chunks = build_chunks(text, self.config, row_tokens)
        for chunk in chunks:
            fill(chunk, self.config)
        self.placed = [placed for chunk in chunks for placed in place(chunk, self.config)]
        if self.faults.norm_grads_unreduced_over_tp:
            _forget_that_norms_are_replicated(self.placed)
        self.chunks: list[Any] = [
            DistributedDataParallel(self.config, ddp_config, chunk, disable_bucketing=number > 0)
            for number, chunk in enumerate(chunks)
        ]
        self.optimizer: Any = get_megatron_optimizer(optimizer_config, self.chunks, use_gloo_process_groups=False)
        self.config.finalize_model_grads_func = finalize_model_grads
        self.config.grad_scale_func = self.optimizer.scale_loss
        self.resolved = _resolved(job, layout, self.rows, text, self.config, ddp_config, optimizer_config)
        for group in self.optimizer.param_groups:
            group["lr"] *= self.faults.lr_factor

    def run(self, report: Callable[[StepRecord], None]) -> None:
        """Train; `report` receives each step's record, on rank 0 only."""
        job, out = self.job, Path(self.job.out)
        first = torch.distributed.get_rank() == 0
        if first:
            write_json(out / "resolved.json", self.resolved)
            write_json(out / "environment.json", environment(job.ranks))
        schedule = row_schedule(
            rows=len(self.rows.ids),
            steps=job.steps,
            global_batch=job.global_batch,
            row_order=job.row_order,
            shuffled=self.faults.rows_shuffled,
        )
        torch.distributed.barrier()
        ended = time.perf_counter()
        for step in range(job.steps):
            loss, supervised = self._forward_backward(schedule[step])
            if step == 0:
                norms = gradient_norms(self.optimizer, self.placed)
                if first:
                    write_json(out / "gradients.json", norms)
            _, grad_norm, _ = self.optimizer.step()
            started, ended = ended, time.perf_counter()
            if first:
                report(
                    StepRecord(
                        step=step,
                        loss=self.faults.reported_loss(step, loss),
                        grad_norm=float(grad_norm),
                        step_time_s=ended - started,
                        tokens=job.global_batch * self.rows.ids.shape[1],
                        supervised_tokens=supervised,
                    )
                )

    def _forward_backward(self, step_rows: np.ndarray) -> tuple[float, int]:
        """One global batch: (mean loss over its supervised tokens, their number), the same on every rank."""
        for chunk in self.chunks:
            chunk.zero_grad_buffer()
        self.optimizer.zero_grad()
        several = len(self.chunks) > 1
        batches = self._batches(step_rows)
        sums = get_forward_backward_func()(
            forward_step_func=self._forward,
            data_iterator=[iter(batches) for _ in self.chunks] if several else iter(batches),
            model=self.chunks if several else self.chunks[0],
            num_microbatches=get_num_microbatches(),
            seq_length=self.rows.ids.shape[1],
            micro_batch_size=self.layout.rows_per_microbatch,
            forward_only=False,
        )
        # Only the last pipeline stage has losses, and all ranks of a TP group have the same ones.
        if parallel_state.get_tensor_model_parallel_rank() > 0:
            sums = []
        whole = torch.stack([*sums, torch.zeros(2, dtype=torch.float64)]).sum(0)
        torch.distributed.all_reduce(whole)
        loss_sum, supervised = whole.tolist()
        return (loss_sum / supervised if supervised else float("nan")), int(supervised)

    def _batches(self, step_rows: np.ndarray) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        """This rank's micro-batches of a step: (ids, labels, label mask), each [rows_per_microbatch, row_tokens]."""
        dp_rank = parallel_state.get_data_parallel_rank()
        batches = []
        for numbers in microbatches(
            step_rows, dp=self.dp, dp_rank=dp_rank, rows_per_microbatch=self.layout.rows_per_microbatch
        ):
            ids = self.rows.ids[numbers]
            labels, counted = targets(ids, self.rows.loss_mask[numbers])
            batches.append((_tensor(ids), _tensor(labels), _tensor(counted)))
        if self.faults.microbatch_dropped and dp_rank == 0:
            batches[-1][2].zero_()
        return batches

    def _forward(self, batches: Iterator[Any], chunk: torch.nn.Module) -> tuple[torch.Tensor, Callable[..., Any]]:
        ids, labels, counted = next(batches)
        positions = torch.arange(ids.shape[1]).expand_as(ids)

        def summed_loss(losses: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            loss_sum = (losses * counted).sum()
            tokens = counted.sum().int()
            record = torch.stack([loss_sum.detach().double(), tokens.double()])
            return (loss_sum * self.dp if self.faults.loss_scaled_by_dp else loss_sum), tokens, record

        return chunk(ids, positions, attention_mask=None, labels=labels), summed_loss


def _initialize_parallel_groups(layout: Layout) -> None:
    parallel_state.initialize_model_parallel(
        tensor_model_parallel_size=layout.tp,
        pipeline_model_parallel_size=layout.pp,
        virtual_pipeline_model_parallel_size=layout.vpp if layout.vpp > 1 else None,
        context_parallel_size=layout.cp,
        expert_model_parallel_size=layout.ep,
        expert_tensor_parallel_size=layout.etp,
        distributed_timeout_minutes=COLLECTIVE_TIMEOUT_MINUTES,
        create_gloo_process_groups=False,
    )


def _optimizer_config(job: RehearsalJob) -> OptimizerConfig:
    optimizer = job.optimizer
    return OptimizerConfig(
        optimizer="adam",
        lr=optimizer.lr,
        weight_decay=optimizer.weight_decay,
        adam_beta1=optimizer.beta1,
        adam_beta2=optimizer.beta2,
        adam_eps=optimizer.eps,
        clip_grad=optimizer.clip_grad,
        use_distributed_optimizer=True,
        params_dtype=torch.float32,
    )


def _resolved(
    job: RehearsalJob, layout: Layout, rows: Rows, text: Any, *configs: TransformerConfig | Any
) -> dict[str, Any]:
    arguments = resolved_arguments(
        *configs,
        world_size=job.ranks,
        data_parallel_size=parallel_state.get_data_parallel_world_size(),
        expert_data_parallel_size=parallel_state.get_expert_data_parallel_world_size(),
        micro_batch_size=layout.rows_per_microbatch,
        global_batch_size=job.global_batch,
        num_microbatches=get_num_microbatches(),
        seq_length=rows.ids.shape[1],
        train_iters=job.steps,
        vocab_size=text["vocab_size"],
        rotary_percent=text["rope_parameters"]["partial_rotary_factor"],
        rotary_base=text["rope_parameters"]["rope_theta"],
        lr_decay_style="constant",
        row_order=job.row_order,
        rows_sha256=rows.manifest["rows_sha256"],
    )
    return {"engine": "rehearsal", "versions": versions(), "arguments": arguments}


def _forget_that_norms_are_replicated(placed: Sequence[Placed]) -> None:
    for one in placed:
        if "norm.weight" in one.name:
            one.parameter.sequence_parallel = False  # type: ignore[attr-defined]


def _tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(array.astype(np.int64))
