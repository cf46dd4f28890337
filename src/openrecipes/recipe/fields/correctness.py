"""What was done to show that the tuned run still trains the same."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from openrecipes.recipe.fields.kinds import Correlation, Count, Date, Fields, NonNegative, Size, Text

Verdict = Literal["pass", "fail", "inconclusive", "not checked"]
"""Outcome of a correctness check. `inconclusive` and `not checked` are neither pass nor fail."""


class ComponentTest(Fields):
    """One part of the stack compared with a trusted implementation at the model's own shape."""

    test: Text = Field(examples=["precision-aware Adam on GPU against an FP64 reference"])
    """What was compared with what."""

    shape: Text = Field(examples=["one MoE layer: hidden 4096, 512 experts, top-10, EP 8"])
    """Sizes the test ran at."""

    gpu: Text = Field(examples=["B200"])
    """GPU the test ran on, or `cpu`."""

    date: Date = Field(examples=["2026-10-11"])
    """Day of the test."""

    result: Verdict = Field(examples=["pass"])
    """Verdict of the test."""

    detail: Text | None = Field(examples=["relative L2 error 5.12e-7 against a bound of 1.0e-3"])
    """Errors, bounds and what the negative controls did."""


class Convergence(Fields):
    """Loss curves of the candidate arm and the reference arm on the same rows."""

    steps: Size = Field(examples=[20], json_schema_extra={"unit": "steps"})
    """Steps compared."""

    result: Verdict = Field(examples=["pass"])
    """Verdict of the comparison."""

    correlation: Correlation | None = Field(examples=[0.9999971])
    """Pearson correlation of the two loss curves; null where it is not defined."""

    final_loss_difference: NonNegative | None = Field(examples=[2.6e-05], json_schema_extra={"unit": "fraction"})
    """Distance of the two losses at the last step over the reference's; null where one of them is missing."""

    pointwise_failures: Count = Field(examples=[0], json_schema_extra={"unit": "steps"})
    """Steps whose losses differ by more than the bound."""

    note: Text | None = Field(examples=["reference arm: 20 steps of the reference recipe on the same rows"])
    """What the two arms are, and what else they share."""


class Correctness(Fields):
    """The author's account of the three correctness checks: configuration, component tests, convergence."""

    result: Verdict = Field(examples=["pass"])
    """Verdict over all three."""

    summary: Text = Field(examples=["passed; 1 component test passed at this model's shape"])
    """The verdict in one sentence."""

    reference: Text = Field(examples=["Not published."])
    """The reference recipe that the candidate was compared with, and where it can be found."""

    configuration: Verdict = Field(examples=["pass"])
    """Verdict of comparing the resolved arguments of both arms."""

    component_tests: tuple[ComponentTest, ...]
    """Component tests that were run; an empty list where none was."""

    convergence: Convergence | None
    """The convergence check; null where none was run."""

    rules: Text = Field(examples=["20 steps against the bounds printed by `openrecipes verify`"])
    """Rules and thresholds that the verdicts follow."""
