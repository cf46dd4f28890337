from __future__ import annotations

import pickle
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from openrecipes.data.blocks import BlockJob
from openrecipes.data.pool import blocks_in_order
from openrecipes.errors import ContentError, Finding, Severity


class Recorded:
    """Workers that note what they are asked."""

    def __init__(self, ahead: int) -> None:
        self.ahead = ahead
        self.begun: list[int] = []
        self.running: list[int] = []
        self.most = 0

    def submit(self, number):
        self.begun.append(number)
        self.running.append(number)
        self.most = max(self.most, len(self.running))
        return number

    def wait(self, ticket):
        self.running.remove(ticket)

    def close(self):
        pass


def job(folder: Path) -> BlockJob:
    return BlockJob(source="", index=folder, make_encoder=lambda: None, eos_token="", seed=0, size=1, folder=folder)


@given(st.integers(0, 30), st.integers(1, 9))
def test_all_blocks_come_in_order_and_no_more_than_allowed_are_in_hand(count, ahead):
    workers = Recorded(ahead)
    made = job(Path("/nowhere"))
    found = list(blocks_in_order(made, count, workers, needed=lambda: None))
    assert found == [made.path(number) for number in range(count)]
    assert workers.begun == list(range(count))
    assert workers.most <= ahead


def test_blocks_beyond_what_the_rows_need_are_not_begun():
    workers = Recorded(ahead=8)
    blocks = blocks_in_order(job(Path("/nowhere")), 100, workers, needed=lambda: 5)
    for _ in range(3):
        next(blocks)
    assert workers.begun == [0, 1, 2, 3, 4]


def test_an_estimate_that_was_too_low_only_costs_the_head_start():
    workers = Recorded(ahead=8)
    assert len(list(blocks_in_order(job(Path("/nowhere")), 10, workers, needed=lambda: 2))) == 10
    assert workers.begun == list(range(10))


def test_blocks_that_are_there_are_not_begun(tmp_path):
    made = job(tmp_path)
    for number in (1, 3):
        made.path(number).touch()
    workers = Recorded(ahead=2)
    assert len(list(blocks_in_order(made, 5, workers, needed=lambda: None))) == 5
    assert workers.begun == [0, 2, 4]


def test_an_error_with_findings_arrives_whole_from_another_process():
    finding = Finding(id="F003", severity=Severity.ERROR, message="torn", remedy="mend", path=Path("a"), line=3)
    error = pickle.loads(pickle.dumps(ContentError([finding])))
    assert error.findings == (finding,)
    assert str(error) == "a:3: error F003: torn\n    mend"
