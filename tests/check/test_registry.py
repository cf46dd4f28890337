from openrecipes.check.registry import CHECKS
from openrecipes.recipe.checkable import Level


def test_every_level_above_draft_is_guarded() -> None:
    assert {check.level for check in CHECKS.values()} == set(Level) - {Level.DRAFT}


def test_ids_stand_under_their_own_name_and_say_why_they_exist() -> None:
    assert all(id == check.id and check.title and check.explanation for id, check in CHECKS.items())
