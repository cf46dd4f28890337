from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import toy

from openrecipes.data import show as show_module
from openrecipes.data.formats import open_writer, reader
from openrecipes.data.packages import sha256_of_file
from openrecipes.data.packing import Row
from openrecipes.data.show import pieces, read_row
from openrecipes.data.verify import rebuild, verify
from openrecipes.errors import ContentError, UsageError


@pytest.fixture(scope="module")
def built(toy_source, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("built") / "rows"
    toy.build(toy_source, out, rows=70)
    return out


@pytest.fixture
def folder(built, tmp_path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "rows"))


def found(folder: Path) -> str:
    return "\n".join(str(finding) for finding in verify(folder, toy.Quiet()))


def test_what_was_built_verifies(built):
    assert verify(built, toy.Quiet()) == []


def change_manifest(folder: Path, change) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    "key",
    [
        "rows", "row_tokens", "tokens", "supervised_tokens", "supervised_token_ratio", "row_supervised_ratio",
        "rows_sha256", "doc_starts_sha256",
    ],
)  # fmt: skip
def test_every_number_of_the_manifest_is_computed_again(folder, key):
    def change(manifest):
        value = manifest[key]
        manifest[key] = value + 1 if isinstance(value, int | float) else "0" * 64 if isinstance(value, str) else {}

    change_manifest(folder, change)
    assert key in found(folder) or "does not hold 129 ids" in found(folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m["conversations"].update(read=9), "read 9 != used"),
        (lambda m: m["conversations"]["rejected"].update(no_targets=99), "the manifest counts"),
        (lambda m: m["conversations"]["tokens"]["counts"].__setitem__(0, 99), "the histogram counts"),
        (lambda m: m["files"].update({"rows.parquet": "0" * 64}), "F016: sha256 is"),
        (lambda m: m["files"].update({"more.parquet": "0" * 64}), "is in the manifest and not in the folder"),
        (lambda m: m["files"].pop("rejections.jsonl"), "is in the folder and not in the manifest"),
        (lambda m: m["packing"].update(eos_id=9), "expected the EOS 9 before a document"),
        (lambda m: m["packing"].update(eos_supervised=True), "eos_supervised is otherwise"),
        (lambda m: m["encoder"].update(vocab_size=100), "the vocabulary has 100 entries"),
    ],
)
def test_every_claim_of_the_manifest_can_fail(folder, change, said):
    change_manifest(folder, change)
    assert said in found(folder)


@pytest.mark.parametrize("key", ["row_tokens", "rows", "options"])
def test_a_manifest_that_does_not_say_how_to_read_the_rows_is_one_clear_error(folder, key):
    change_manifest(folder, lambda m: m.pop(key))
    with pytest.raises(ContentError, match="F001: rows is"):
        verify(folder, toy.Quiet())
    with pytest.raises(ContentError, match="F001: rows is"):
        read_row(folder, 0)


def replace_rows(folder: Path, change) -> None:
    """Write changed rows with right file hashes, so that only the rows themselves can give them away."""
    rows = list(reader("parquet")(folder, 128))
    rows = [change(number, row) for number, row in enumerate(rows)]
    writer = open_writer("parquet", folder, row_tokens=128, source_name="x")
    for row in rows:
        writer.write(row)
    writer.close()
    change_manifest(folder, lambda m: m["files"].update({"rows.parquet": sha256_of_file(folder / "rows.parquet")}))


def changed(row: Row, name: str, place: int, value: int) -> Row:
    arrays = {key: getattr(row, key).copy() for key in ("ids", "loss_mask", "doc_starts")}
    arrays[name][place] = value
    return Row(**arrays)


@pytest.mark.parametrize(
    ("name", "place", "value", "said"),
    [
        ("ids", 5, 300, "ids run from"),
        ("ids", 5, -1, "ids run from -1"),
        ("ids", 5, 1, "rows_sha256"),
        ("loss_mask", 7, 2, "the mask holds 2"),
        ("loss_mask", 0, 1, "the first token is a target"),
        ("doc_starts", 0, 200, "do not ascend within 0 .. 127"),
        ("doc_starts", 0, 1, "doc_starts_sha256"),
    ],
)
def test_a_single_changed_value_in_the_last_row_is_found(folder, name, place, value, said):
    replace_rows(folder, lambda number, row: changed(row, name, place, value) if number == 69 else row)
    assert said in found(folder)


def test_a_row_without_targets_is_found(folder):
    def change(number, row):
        return Row(ids=row.ids, loss_mask=np.zeros(128, np.uint8), doc_starts=row.doc_starts) if number == 3 else row

    replace_rows(folder, change)
    assert "row 3: error F013: no token is a target" in found(folder)


def test_swapped_rows_are_found(folder):
    rows = list(reader("parquet")(folder, 128))
    replace_rows(folder, lambda number, row: rows[{0: 1, 1: 0}.get(number, number)])
    assert "rows_sha256" in found(folder)


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_truncated_rows_are_one_clear_finding(folder, kept):
    data = (folder / "rows.parquet").read_bytes()
    (folder / "rows.parquet").write_bytes(data[: int(len(data) * kept)])
    assert "rows.parquet: error F003: not readable as Parquet" in found(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format_version": 1}', '{"kind": "openrecipes fixed rows"}'])
def test_a_damaged_manifest_is_one_clear_error(folder, text):
    (folder / "manifest.json").write_text(text)
    with pytest.raises(ContentError, match="F001"):
        verify(folder, toy.Quiet())


def test_a_folder_without_rows_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match=r"is not a folder of built rows: it has no manifest\.json"):
        verify(tmp_path, toy.Quiet())


def test_rows_built_anew_are_compared(folder, monkeypatch):
    monkeypatch.setattr("openrecipes.data.builder.ConversationEncoder", toy.ToyEncoder)
    assert rebuild(folder, toy.Quiet()) == []
    change_manifest(folder, lambda m: m["options"].update(seed=43))
    assert "F017: rows_sha256 is" in "\n".join(str(finding) for finding in rebuild(folder, toy.Quiet()))
    change_manifest(folder, lambda m: m["options"].pop("seed"))
    with pytest.raises(ContentError, match=r"F012: the options are incomplete: .*seed"):
        rebuild(folder, toy.Quiet())


def test_a_row_is_shown_in_pieces_that_make_it_up(built):
    row = read_row(built, 1)
    shown = list(pieces(row, toy.ToyEncoder(toy.EncodeOptions(tokenizer="toy"))))
    assert "".join(piece.text for piece in shown) == bytes(id for id in row.ids if id != toy.EOS).decode()
    assert [piece.first_token for piece in shown if piece.begins] == row.doc_starts.tolist()
    for piece in shown:
        assert bool(row.loss_mask[piece.first_token]) == piece.target
    with pytest.raises(UsageError, match=r"row 70 does not exist: .* has the rows 0 to 69"):
        read_row(built, 70)


def test_the_tokenizer_of_the_build_is_used_unless_another_folder_is_named(built, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(show_module, "ConversationEncoder", asked.append)
    show_module.decoder(built, None)
    show_module.decoder(built, tmp_path)
    assert [options.tokenizer for options in asked] == ["toy", str(tmp_path)]
