from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest
from tests.data.toy import build, write_source

from openrecipes.data.report import bars, write_report
from openrecipes.errors import ContentError


@pytest.fixture(scope="module")
def manifest(tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("report")
    write_source(folder / "chat.jsonl", 300)
    return build(folder / "chat.jsonl", folder / "rows", rows=20, row_tokens=64)


def page(manifest: dict, folder: Path) -> str:
    write_report(manifest, folder / "new" / "report.html")
    assert [path.name for path in (folder / "new").iterdir()] == ["report.html"]
    return (folder / "new" / "report.html").read_text(encoding="utf-8")


def test_the_page_shows_the_manifests_numbers(manifest, tmp_path):
    text = page(manifest, tmp_path)
    assert manifest["rows_sha256"] in text
    assert f"{manifest['supervised_tokens']:,} tokens" in text
    for kind, count in manifest["conversations"]["rejected"].items():
        assert re.search(rf"<td>{kind}</td>\s*<td><div[^>]*></div></td>\s*<td>{count}</td>", text)
    counts = [int(found.replace(",", "")) for found in re.findall(r"<td>([\d,]+)</td></tr>", text)]
    conversations = manifest["conversations"]
    assert sum(counts) == conversations["used"] + manifest["rows"] + sum(conversations["rejected"].values())
    assert "http" not in text


def test_a_hostile_name_is_text(manifest, tmp_path):
    hostile = copy.deepcopy(manifest) | {"name": "<script>alert(1)</script>"}
    assert "<script>" not in page(hostile, tmp_path)


def test_a_manifest_without_what_it_shows_is_refused(manifest, tmp_path):
    with pytest.raises(ContentError, match="lacks what a report shows: KeyError: 'conversations'"):
        page({key: manifest[key] for key in manifest if key != "conversations"}, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_bars_are_as_long_as_their_share_of_the_longest():
    found = bars(["a", "b", "c", "d", "e"], [0, 4, 0, 1, 0])
    assert [(bar.label, bar.count, bar.length) for bar in found] == [("b", 4, 100), ("c", 0, 0), ("d", 1, 25)]
    assert bars(["a"], [0]) == bars([], []) == []
