"""The real huggingface_hub client against a small server that answers as the hub's API does."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from openrecipes.data.sources.hub import parse_reference
from openrecipes.errors import UsageError

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = {
    "README.md": b"a card",
    "data/train-00000-of-00002.jsonl": b'{"n": 0}\n{"n": 1}\n',
    "data/train-00001-of-00002.jsonl": b'{"n": 2}\n',
}


class Hub(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self, *, with_body: bool) -> None:
        path = self.path.split("?")[0]
        files = f"/datasets/some/set/resolve/{COMMIT}/"
        if path.startswith(f"/api/datasets/some/set/revision/{COMMIT}"):
            siblings = [{"rfilename": name} for name in FILES]
            found = {"id": "some/set", "sha": COMMIT, "siblings": siblings}
            self._send(json.dumps(found).encode(), "application/json", with_body)
        elif path.startswith(f"/api/datasets/some/set/tree/{COMMIT}"):
            entries = [{"type": "file", "path": n, "size": len(d), "oid": self._etag(d)} for n, d in FILES.items()]
            self._send(json.dumps(entries).encode(), "application/json", with_body)
        elif path.startswith(files) and path.removeprefix(files) in FILES:
            self._send(FILES[path.removeprefix(files)], "application/octet-stream", with_body)
        else:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound" if "nobody" in path else "RevisionNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()

    @staticmethod
    def _etag(data: bytes) -> str:
        return hashlib.sha1(data).hexdigest()

    def _send(self, data: bytes, kind: str, with_body: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", f'"{self._etag(data)}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if with_body:
            self.wfile.write(data)


@pytest.fixture
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


SCRIPT = """
import json, sys
from pathlib import Path
from openrecipes.data.sources.open import open_source
from openrecipes.errors import OpenRecipesError
try:
    source = open_source(sys.argv[1], Path(sys.argv[2]))
    last = len(source) - 1
    print(json.dumps({"records": source.read(range(last + 1)), "where": source.where(last)} | source.describe()))
except OpenRecipesError as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_code)
"""


def read(text: str, tmp_path: Path, endpoint: str) -> subprocess.CompletedProcess[str]:
    # A process of its own, since the client reads its settings when it is imported.
    environment = {"HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path / "hub"), "HF_HUB_DISABLE_XET": "1"}
    environment |= {"NO_PROXY": "127.0.0.1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "PATH": ""}
    command = [sys.executable, "-c", SCRIPT, text, str(tmp_path / "index")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


def test_a_dataset_at_a_commit_is_fetched_and_read(tmp_path, endpoint):
    done = read(f"hf:some/set@{COMMIT}", tmp_path, endpoint)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["records"] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert found["revision"] == COMMIT
    assert found["where"] == "data/train-00001-of-00002.jsonl:1"
    assert [file["name"] for file in found["files"]] == [name for name in FILES if name != "README.md"]


def test_a_pattern_chooses_among_the_files(tmp_path, endpoint):
    done = read(f"hf:some/set@{COMMIT}::data/train-00000*", tmp_path, endpoint)
    assert json.loads(done.stdout)["records"] == [{"n": 0}, {"n": 1}]
    fetched = {path.name for path in (tmp_path / "hub").rglob("*.jsonl")}
    assert fetched == {"train-00000-of-00002.jsonl"}


@pytest.mark.parametrize("text", [f"hf:nobody/set@{COMMIT}", f"hf:some/set@{COMMIT[::-1]}"])
def test_a_dataset_or_commit_that_is_not_there_is_one_clear_error(tmp_path, endpoint, text):
    done = read(text, tmp_path, endpoint)
    assert done.returncode == 4
    assert done.stderr.startswith("cannot fetch dataset")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("text", ["hf:some/set", "hf:some/set@main", "hf:some/set@v1.0", f"hf:some/set@{COMMIT[:7]}"])
def test_a_revision_that_may_move_is_refused(text):
    with pytest.raises(UsageError, match="expected a commit of 40 hexadecimal digits, since branches and tags move"):
        parse_reference(text)


@pytest.mark.parametrize("text", ["hf:set", "hf:a/b/c@x", "hf:"])
def test_a_reference_of_another_form_is_refused(text):
    with pytest.raises(UsageError, match="not of the form hf:owner/name@COMMIT"):
        parse_reference(text)
