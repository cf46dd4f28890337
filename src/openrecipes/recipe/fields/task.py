"""What was trained on: the workload and the rows."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from openrecipes.recipe.fields.kinds import Count, Fields, Fraction, Sha256, Size, Text


class Workload(Fields):
    """The work of one optimizer step, whatever the layout."""

    row_tokens: Size = Field(examples=[8192], json_schema_extra={"unit": "tokens"})
    """Length of a row, the fixed-length packed training sequence."""

    rows: Text = Field(examples=["SFT conversations"])
    """What the rows hold."""

    global_batch: Size = Field(examples=[128], json_schema_extra={"unit": "rows"})
    """Rows in one optimizer step, over all GPUs."""

    precision: Literal["fp32", "fp16", "bf16", "fp8"] = Field(examples=["bf16"])
    """Number format of the matrix products."""


class DatasetBuild(Fields):
    """How the rows were made from the source, closely enough to make them again."""

    name: Text = Field(examples=["qwen35-tulu3-fixed8192-v1"])
    """Name of this build."""

    tokenizer: Text = Field(examples=["Qwen3.5 (tokenizer.json sha256 5f9e4d49...)"])
    """Tokenizer, identified so that it can be told from any other."""

    loss_mask: Text = Field(examples=["qwen3_5"])
    """Rule that decides which tokens are supervised."""

    rows: Size = Field(examples=[6400], json_schema_extra={"unit": "rows"})
    """Rows built."""

    row_tokens: Size = Field(examples=[8192], json_schema_extra={"unit": "tokens"})
    """Length of each built row; the workload's."""

    padding_tokens: Count = Field(examples=[0], json_schema_extra={"unit": "tokens"})
    """Padding tokens in all rows together."""

    seed: Count = Field(examples=[42])
    """Seed of the permutation."""

    packing: Text = Field(examples=["conversations in a seeded order, joined and cut into rows"])
    """How conversations become rows."""

    supervised_token_ratio: Fraction = Field(examples=[0.676])
    """Supervised tokens over all tokens of the build."""

    parquet_sha256: Sha256 | None = Field(examples=["f215bdc6aba60d6d0dff4471eaef805765cb393e40b95762190535376491ab01"])
    """SHA-256 of the built parquet file; null where the rows are kept in another format."""

    parquet_bytes: Size | None = Field(examples=[76127393], json_schema_extra={"unit": "bytes"})
    """Size of the built parquet file; null where the rows are kept in another format."""

    builder: Text = Field(examples=["data/generate_fixed_sft.py (data/README.md)"])
    """Program that built the rows."""


class Dataset(Fields):
    """The training data and its identity."""

    name: Text = Field(examples=["Tulu 3 SFT mixture"])
    """Name of the data set in words."""

    source: Text = Field(examples=["allenai/tulu-3-sft-mixture"])
    """Where it is published: a Hugging Face id, a package or a web address."""

    revision: Text = Field(examples=["b14afda60f1bbebe55d5d2fa1e4df5042f97f8be"])
    """Commit or release that was read."""

    license: Text = Field(examples=["ODC-By 1.0"])
    """Licence of the data."""

    rows_sha256: Sha256 = Field(examples=["7a837641dcde9ebcac9d3ed5ed84ddd941fc9bfc173606cc701e9a3f51c307f1"])
    """Hash of the rows' content, as the builder defines it; equal hashes mean equal training data."""

    build: DatasetBuild
    """How the rows were made."""
