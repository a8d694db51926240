"""A real Prometheus for tests: found, or taken from Debian's package without installing it.

    with PrometheusServer(folder) as server:
        server.scrape({"envoy": ("127.0.0.1:9902", "/stats/prometheus")})

Looked for in PATH, then in our cache folder; else the package is fetched into that folder
and only unpacked, which needs no rights. It ends with the process that started it.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.error import URLError
from urllib.request import urlopen

from fairlead import errors
from tools.cluster.process import Process, free_port
from tools.servers import debian

HOW = "install the package prometheus, or put the program into PATH"
_READY_SECONDS = 60.0
_DIAL_SECONDS = 5.0


class PrometheusServer:
    """One Prometheus on a free loopback port, asking its targets every second."""

    def __init__(
        self,
        folder: Path,
        web_config: Mapping[str, object] | None = None,
        jobs: Sequence[Mapping[str, object]] | None = None,
    ) -> None:
        """With jobs of one's own, `scrape` is told to nobody."""
        self._folder = folder
        self._web_config = web_config
        self._jobs = jobs
        self._process: Process | None = None
        self.port = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f"{'https' if self._web_config else 'http'}://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise errors.Unavailable("prometheus is not running", hint="call start() first")
        return self._process.pid

    def scrape(self, targets: Mapping[str, tuple[str, str]]) -> None:
        """From now on ask these: name -> (address, path)."""
        groups = [
            {"targets": [address], "labels": {"job": name, "__metrics_path__": path}}
            for name, (address, path) in targets.items()
        ]
        draft = self._folder / "targets.new"
        draft.write_text(json.dumps(groups), encoding="utf-8")
        draft.replace(self._folder / "targets.json")

    def start(self) -> None:
        program = find()
        self._folder.mkdir(parents=True, exist_ok=True)
        self.scrape({})
        # One that comes back is where it was.
        self.port = self.port or free_port()
        command = [str(program), *self._arguments()]
        self._process = Process(command, self._folder / "prometheus.log")
        self._process.wait_until(self._answers, _READY_SECONDS)

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None

    def _arguments(self) -> list[str]:
        usual = [{"job_name": "tests", "file_sd_configs": [{"files": ["targets.json"]}]}]
        jobs = usual if self._jobs is None else self._jobs
        # JSON is YAML, and has no traps.
        every = {"scrape_interval": "1s", "scrape_timeout": "1s"}
        config = self._folder / "prometheus.yml"
        config.write_text(json.dumps({"global": every, "scrape_configs": jobs}), encoding="utf-8")
        arguments = [
            f"--config.file={config}",
            f"--storage.tsdb.path={self._folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]
        if self._web_config is not None:
            web = self._folder / "web.yml"
            web.write_text(json.dumps(self._web_config), encoding="utf-8")
            arguments.append(f"--web.config.file={web}")
        return arguments

    def _answers(self) -> bool:
        if self._web_config is not None:
            log = self._folder / "prometheus.log"
            return "Server is ready" in log.read_text(encoding="utf-8")
        try:
            with urlopen(f"{self.url}/-/ready", timeout=_DIAL_SECONDS):  # noqa: S310 - our own server
                return True
        except (URLError, OSError):
            return False


def find() -> Path:
    """The program; Unavailable, with a reason to show, where there is none to be had."""
    present = shutil.which("prometheus")
    if present:
        return Path(present)
    return debian.unpacked(["prometheus"], HOW) / "usr" / "bin" / "prometheus"


def find_tool() -> Path | None:
    """The program that checks configurations, where it came along."""
    beside = find().with_name("promtool")
    return beside if beside.exists() else None
