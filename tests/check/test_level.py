from hypothesis import given
from hypothesis import strategies as st

from openrecipes.check.level import level_of
from openrecipes.recipe.checkable import Check, Level, Outcome, Status

GUARDED = list(Level)[1:]
LETS_PASS = {Status.PASS, Status.NOT_APPLICABLE}


def entry(answers: list[tuple[Level, Status]]) -> Level:
    checks = [
        Check(id=str(i), title="", level=level, explanation="", run=lambda case: Outcome(status=Status.PASS))
        for i, (level, _) in enumerate(answers)
    ]
    return level_of(checks, {str(i): Outcome(status=status) for i, (_, status) in enumerate(answers)})


def test_a_file_that_parses_is_a_draft() -> None:
    assert entry([]) is Level.DRAFT


def test_all_pass() -> None:
    assert entry([(level, Status.PASS) for level in GUARDED]) is Level.REPRODUCED


def test_each_level_is_capped_by_a_check_that_does_not_pass() -> None:
    for level in GUARDED:
        for status in (Status.FAIL, Status.NOT_CHECKED):
            answers = [(guarded, Status.PASS) for guarded in GUARDED]
            assert entry([*answers, (level, status)]) == level - 1


def test_a_level_at_which_nothing_passed_rests_on_nothing() -> None:
    consistent = [(Level.CONSISTENT, Status.PASS), (Level.CONSISTENT, Status.NOT_APPLICABLE)]
    assert entry([*consistent, (Level.MEASURED, Status.NOT_APPLICABLE)]) is Level.CONSISTENT
    assert entry([*consistent, (Level.VERIFIED, Status.PASS)]) is Level.CONSISTENT


@given(st.lists(st.tuples(st.sampled_from(GUARDED), st.sampled_from(Status))))
def test_the_level_is_what_the_definition_says(answers: list[tuple[Level, Status]]) -> None:
    reached = entry(answers)
    assert all(status in LETS_PASS for level, status in answers if level <= reached)
    above = [status for level, status in answers if level == reached + 1]
    assert reached is Level.REPRODUCED or Status.PASS not in above or not LETS_PASS.issuperset(above)
