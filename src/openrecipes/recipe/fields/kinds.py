"""The kinds of value a recipe field may have, each with its range.

Scalars are strict: text is never turned into a number, nor the other way round. The upper bounds are
far above any real value and keep every number exact as a double, so that no arithmetic overflows.
"""

from __future__ import annotations

import datetime
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, StringConstraints, WithJsonSchema

LARGEST = 10**15
"""Upper bound of every number in a recipe; below 2**53, so a double holds each whole number exactly."""


class Fields(BaseModel):
    """A frozen group of documented fields that refuses unknown ones."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        populate_by_name=True,
        allow_inf_nan=False,
    )


def _real_date(text: str) -> str:
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        raise ValueError("no such day in the calendar") from None
    return text


def _web_address(text: str) -> str:
    parts = urlsplit(text)  # raises ValueError where the host is malformed, as in `http://[`
    if parts.scheme not in ("http", "https") or not parts.hostname or any(c.isspace() for c in text):
        raise ValueError("not an http(s) address with a host")
    return text


Text = Annotated[str, Strict(), StringConstraints(min_length=1)]
"""Characters exactly as written, at least one."""

Sha256 = Annotated[
    str,
    Strict(),
    StringConstraints(pattern="^[0-9a-f]{64}$"),
    Field(json_schema_extra={"format": "sha256"}),
]
"""A SHA-256 as 64 lower-case hexadecimal digits."""

Date = Annotated[
    str,
    Strict(),
    StringConstraints(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$"),
    AfterValidator(_real_date),
    Field(json_schema_extra={"format": "date"}),
]
"""A day as text, `YYYY-MM-DD`."""

Url = Annotated[
    str,
    Strict(),
    AfterValidator(_web_address),
    WithJsonSchema({"type": "string", "format": "uri", "pattern": "^https?://"}),
]
"""An `http` or `https` address."""

Flag = Annotated[bool, Strict()]
"""`true` or `false`."""

Size = Annotated[int, Strict(), Field(ge=1, le=LARGEST)]
"""A whole number of 1 or more."""

Count = Annotated[int, Strict(), Field(ge=0, le=LARGEST)]
"""A whole number of 0 or more."""

Positive = Annotated[float, Strict(), Field(gt=0, le=LARGEST)]
"""A number above 0."""

NonNegative = Annotated[float, Strict(), Field(ge=0, le=LARGEST)]
"""A number of 0 or more."""

Fraction = Annotated[float, Strict(), Field(gt=0, le=1)]
"""A share of a whole: above 0, at most 1."""

Correlation = Annotated[float, Strict(), Field(ge=-1, le=1)]
"""A correlation coefficient."""
