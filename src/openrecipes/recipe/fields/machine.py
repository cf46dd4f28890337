"""What a recipe ran on: the GPUs and the software."""

from __future__ import annotations

from pydantic import Field

from openrecipes.recipe.fields.kinds import Fields, Size, Text


class Gpu(Fields):
    """The accelerators of the run."""

    type: Text = Field(examples=["B200"])
    """GPU model as the GPU facts name it; `cpu` where the run is a rehearsal on CPU processes."""

    memory_gb: Size | None = Field(examples=[180], json_schema_extra={"unit": "GB (10^9 bytes)"})
    """Memory of one GPU as its vendor states it; null for `cpu`."""

    count: Size = Field(examples=[48], json_schema_extra={"unit": "GPUs"})
    """GPUs of the whole run; for `cpu`, the number of processes (ranks)."""

    per_node: Size = Field(examples=[8], json_schema_extra={"unit": "GPUs per node"})
    """GPUs in one node; for `cpu`, the processes on one machine."""

    instance: Text | None = Field(examples=["AWS p6-b200.48xlarge"])
    """Cloud provider and instance type, which the price per GPU-hour is looked up by; null where there is none."""


class Stack(Fields):
    """Versions of the software that the result depends on; null where a part is not installed."""

    framework: Text = Field(examples=["slime with local patches, not pinned"])
    """Trainer that reads the command. Its first word names the engine: `slime`, `megatron` or `rehearsal`."""

    megatron_lm: Text | None = Field(examples=["commit 1dcf0daf (megatron-core 0.16.0rc0)"])
    """Megatron-LM commit or megatron-core release."""

    transformer_engine: Text | None = Field(examples=["2.10.0"])
    """Transformer Engine release."""

    pytorch: Text | None = Field(examples=["2.11.0 (CUDA 12.9 build)"])
    """PyTorch release and build."""

    cuda: Text | None = Field(examples=["12.9"])
    """CUDA release."""

    nccl: Text | None = Field(examples=["2.28.9"])
    """NCCL release, best as printed by the measured run itself."""

    deepep: Text | None = Field(examples=["1.2.1"])
    """DeepEP release."""

    python: Text | None = Field(examples=["3.12"])
    """Python release."""

    fla: Text | None = Field(examples=["0.4.1 (flash-linear-attention)"])
    """flash-linear-attention release."""

    triton: Text | None = Field(examples=["3.6.0"])
    """Triton release."""

    network: Text | None = Field(examples=["8 GPUs per node, EFA, 3.2 Tb/s RDMA per node"])
    """Network between nodes and within one, with its bandwidth."""

    runtime_fixes: Text | None = Field(examples=["patches/fla_blackwell_guard.py, imported before FLA"])
    """Changes made to the installed software when the run starts, and how they are loaded."""

    source: Text = Field(examples=["environment dump of the measured run's image, taken 2026-10-11"])
    """Where these versions were read, and when."""

    @property
    def engine(self) -> str:
        """The trainer's name: the first word of `framework`, in lower case; empty where there is none."""
        return next(iter(self.framework.casefold().split()), "")
