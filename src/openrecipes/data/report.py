"""One page about built rows: lengths, supervised shares and rejections as bars; it opens offline."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2

from openrecipes.errors import ContentError, Finding, Severity


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bar:
    """One bar: what it stands for, its count, and its length in percent of the longest."""

    label: str
    count: int
    length: float


def write_report(manifest: Mapping[str, Any], path: Path) -> None:
    """Write the page for a manifest of `openrecipes data build`, whole or not at all.

    Raises:
        ContentError: the manifest lacks what the page shows.
    """
    try:
        page = _page(manifest)
    except (KeyError, TypeError, ValueError) as error:
        finding = Finding(
            id="F014",
            severity=Severity.ERROR,
            message=f"the manifest lacks what a report shows: {type(error).__name__}: {error}",
            remedy="build the rows again; a manifest is never edited by hand",
        )
        raise ContentError([finding]) from error
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        unfinished.write_text(page, encoding="utf-8")
        unfinished.rename(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _page(manifest: Mapping[str, Any]) -> str:
    conversations, rejected = manifest["conversations"], manifest["conversations"]["rejected"]
    lengths, shares = conversations["tokens"], manifest["row_supervised_ratio"]
    packing, encoder = manifest["packing"], manifest["encoder"]
    facts = {
        "rows": f"{manifest['rows']:,} of {manifest['row_tokens']:,} tokens = {manifest['tokens']:,} tokens",
        "supervised": f"{manifest['supervised_tokens']:,} tokens, {manifest['supervised_token_ratio']:.1%}",
        "rows without targets": f"{packing['rows_without_targets']:,} left out",
        "conversations": (
            f"{conversations['in_source']:,} in the source, {conversations['read']:,} read, "
            f"{conversations['used']:,} used, {sum(rejected.values()):,} rejected"
        ),
        "permutation": f"{packing['permutation']}, seed {manifest['options']['seed']}",
        "between conversations": f"{packing['eos_token']}, {'' if packing['eos_supervised'] else 'not '}supervised",
        "loss mask": str(manifest["options"]["encode"]["loss_mask"]),
        "tokenizer.json sha256": str(encoder.get("tokenizer_sha256")),
        "rows_sha256": str(manifest["rows_sha256"]),
    }
    charts = [
        ("Conversations by their tokens", bars(_ranges(lengths["edges"]), lengths["counts"])),
        ("Rows by the share of supervised tokens", bars(_percents(shares["edges"]), shares["counts"])),
        ("Rejected conversations by their reason", bars(list(rejected), list(rejected.values()))),
    ]
    return _TEMPLATE.render(name=manifest["name"], facts=facts, charts=charts, tool=manifest["tool"])


def bars(labels: Sequence[str], counts: Sequence[int]) -> list[Bar]:
    """The bars of a histogram; empty ones at both ends are left out."""
    filled = [place for place, count in enumerate(counts) if count]
    if not filled:
        return []
    shown = list(zip(labels, counts, strict=True))[filled[0] : filled[-1] + 1]
    most = max(counts)
    return [Bar(label=label, count=count, length=round(100 * count / most, 2)) for label, count in shown]


def _ranges(edges: Sequence[int | None]) -> list[str]:
    return [
        f"{low:,} or more" if high is None else f"{low:,} to {high - 1:,}"
        for low, high in itertools.pairwise(edges)
        if low is not None
    ]


def _percents(edges: Sequence[float]) -> list[str]:
    return [f"{100 * low:.0f} to {100 * high:.0f} %" for low, high in itertools.pairwise(edges)]


_TEMPLATE = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(
    """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ name }}</title>
<style>
  :root { color-scheme: light dark; --bar: #2f6fdb; }
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 42rem; margin: 2rem auto; padding: 0 1rem; }
  h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
  dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; }
  dt { opacity: .7; } dd { margin: 0; overflow-wrap: anywhere; }
  table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
  td { padding: 0 .75rem 0 0; white-space: nowrap; }
  td:nth-child(2) { width: 100%; } td:last-child { text-align: right; }
  .bar { height: 1.1rem; min-width: 1px; background: var(--bar); }
  footer { margin-top: 2rem; opacity: .7; }
</style>
<h1>{{ name }}</h1>
<dl>
{% for term, fact in facts.items() %}
  <dt>{{ term }}</dt><dd>{{ fact }}</dd>
{% endfor %}
</dl>
{% for title, bars in charts %}
<h2>{{ title }}</h2>
{% if bars %}
<table>
{% for bar in bars %}
  <tr><td>{{ bar.label }}</td>
    <td>{% if bar.count %}<div class="bar" style="width: {{ bar.length }}%"></div>{% endif %}</td>
    <td>{{ "{:,}".format(bar.count) }}</td></tr>
{% endfor %}
</table>
{% else %}
<p>none</p>
{% endif %}
{% endfor %}
<footer>{{ tool.name }} {{ tool.version }}</footer>
</html>
"""
)
