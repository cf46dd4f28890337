"""The typed, frozen, documented fields of a recipe; attributes are named as the YAML keys are."""

from openrecipes.recipe.fields.correctness import ComponentTest, Convergence, Correctness, Verdict
from openrecipes.recipe.fields.entry import Author, Change, EvidenceReference, Recipe
from openrecipes.recipe.fields.layout import LayoutFields, RecomputeFields
from openrecipes.recipe.fields.machine import Gpu, Stack
from openrecipes.recipe.fields.result import ActiveParams, Result
from openrecipes.recipe.fields.task import Dataset, DatasetBuild, Workload

__all__ = [
    "ActiveParams",
    "Author",
    "Change",
    "ComponentTest",
    "Convergence",
    "Correctness",
    "Dataset",
    "DatasetBuild",
    "EvidenceReference",
    "Gpu",
    "LayoutFields",
    "Recipe",
    "RecomputeFields",
    "Result",
    "Stack",
    "Verdict",
    "Workload",
]
