"""Files written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from openrecipes.errors import UsageError


def write_whole(path: Path, data: bytes) -> None:
    """Write `data` to a temporary file beside `path`, then rename it, so that no half-written file is ever seen.

    An existing file keeps its permissions; a link is followed and stays a link.

    Raises:
        UsageError: the file cannot be written; whatever stood at `path` still does.
    """
    target = path.resolve()
    temporary: Path | None = None
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        temporary = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o644)
        temporary.replace(target)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror}); nothing was changed") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
