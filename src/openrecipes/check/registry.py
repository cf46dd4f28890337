"""Every check, in the order in which it is run and printed."""

from __future__ import annotations

from openrecipes.engines.checks import CHECKS as ENGINE_CHECKS
from openrecipes.measure.checks import CHECKS as MEASURE_CHECKS
from openrecipes.model.checks import CHECKS as MODEL_CHECKS
from openrecipes.plan.checks import CHECKS as PLAN_CHECKS
from openrecipes.recipe.checkable import Check
from openrecipes.verify.checks import CHECKS as VERIFY_CHECKS

_ALL = (*MODEL_CHECKS, *ENGINE_CHECKS, *PLAN_CHECKS, *MEASURE_CHECKS, *VERIFY_CHECKS)

CHECKS: dict[str, Check] = {check.id: check for check in _ALL}

if len(CHECKS) < len(_ALL):
    raise TypeError("two checks have the same id")
