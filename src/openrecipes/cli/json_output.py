"""The object that `--json` prints, the same in every command."""

from __future__ import annotations

import json
from collections.abc import Iterable

from openrecipes.errors import Finding, Severity

FORMAT_VERSION = 1


def json_text(findings: Iterable[Finding], **content: object) -> str:
    """One JSON object of `format_version`, `ok` and `findings`, and what the command adds."""
    found = list(findings)
    ok = all(finding.severity is not Severity.ERROR for finding in found)
    head = {"format_version": FORMAT_VERSION, "ok": ok, "findings": [finding.to_json() for finding in found]}
    return json.dumps({**head, **content}, indent=2, ensure_ascii=False)
