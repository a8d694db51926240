"""Versions of the original's content, and where tests keep them: folders, git, a git server."""

import contextlib
import http.server
import json
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

RULE: dict[str, Any] = {
    "conditions": [
        {"type": "alert_is_firing", "alert": {"name": "SamplesImagestreamImportFailing"}}
    ],
    "gathering_functions": {
        "logs_of_namespace": {"namespace": "openshift-cluster-samples-operator", "tail_lines": 100}
    },
}
LOG: dict[str, Any] = {
    "namespace": "openshift-monitoring",
    "pod_name_regex": "prom.*",
    "messages": ["a<b & c"],
}
MAP = [["4.0.0", "empty.json"], ["4.17.0-0", "experimental.json"], ["4.17.5", "sub/later.json"]]


def version_files(version: str) -> dict[str, bytes]:
    """What `build.py` of the original's repository would make for the version."""
    empty = {"conditional_gathering_rules": [], "container_logs": [], "version": version}
    made: dict[str, Any] = {
        "v1/rules.json": {"rules": [RULE], "version": version},
        "v2/cluster_version_mapping.json": MAP,
        "v2/empty.json": empty,
        "v2/experimental.json": {**empty, "conditional_gathering_rules": [RULE]},
        "v2/sub/later.json": {**empty, "container_logs": [LOG]},
    }
    return {path: json.dumps(each, indent=1).encode() for path, each in made.items()}


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=Rules Team", "-c", "user.email=rules@example.test")
    command = ["git", "-C", str(folder), *who, *arguments]
    quiet = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    ran = subprocess.run(command, check=True, capture_output=True, text=True, env=quiet)
    return ran.stdout.strip()


def repository(folder: Path) -> Path:
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    return folder


def tag(folder: Path, version: str, files: Mapping[str, bytes], *, force: bool = False) -> str:
    """Commit the files and tag them; the commit."""
    write(folder, files)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", version)
    git(folder, "tag", "-a", "-m", version, *(["-f"] if force else []), version)
    return git(folder, "rev-parse", "HEAD")


def accept_pushes(folder: Path) -> None:
    """Over HTTP and from anybody, also to the branch that is checked out."""
    git(folder, "config", "http.receivepack", "true")
    git(folder, "config", "receive.denyCurrentBranch", "ignore")


@contextlib.contextmanager
def serving_git(folder: Path) -> Iterator[str]:
    """Git's own HTTP backend over the repository; its address."""
    made = type("Backend", (_Backend,), {"root": folder})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), made) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/.git"
        finally:
            server.shutdown()
            thread.join()


class _Backend(http.server.BaseHTTPRequestHandler):
    root: Path

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def _answer(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        given = {
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        ran = subprocess.run(
            ["git", "http-backend"],
            input=body,
            check=False,
            capture_output=True,
            env={**os.environ, **given},
        )
        head, _, answer = ran.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None: ...
