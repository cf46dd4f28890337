"""Every check of a recipe's own numbers (A101 and up), in the order of their ids."""

from __future__ import annotations

from openrecipes.model import layout_checks, result_checks

CHECKS = tuple(sorted((*layout_checks.CHECKS, *result_checks.CHECKS), key=lambda check: check.id))
