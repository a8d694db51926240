"""What was served, counted; written as Prometheus reads it."""

from collections import Counter
from collections.abc import Iterator

from fairlead.areas.content.service.answers import Answer

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Tally:
    """Counts of one process. The first has the original's name, for its dashboards."""

    def __init__(self, content: str) -> None:
        self._content = content
        self._answers: Counter[tuple[Answer, int]] = Counter()
        self._refusals: Counter[int] = Counter()

    def served(self, found: Answer, status: int) -> None:
        self._answers[(found, status)] += 1

    def refused(self, status: int) -> None:
        self._refusals[status] += 1

    def text(self, *, degraded: bool) -> str:
        return "".join(f"{line}\n" for line in self._lines(degraded=degraded))

    def _lines(self, *, degraded: bool) -> Iterator[str]:
        name = "io_gathering_remote_configuration"
        yield f"# HELP {name} Remote configurations that were served, by file and version."
        yield f"# TYPE {name} counter"
        files: Counter[tuple[str, str]] = Counter()
        for (found, _), count in self._answers.items():
            if found.file.startswith("v2/"):
                files[(f"{found.channel}/{found.file}", found.version)] += count
        for (file, version), count in files.items():
            yield f"{name}{_labels(file=file, version=version)} {count}"
        yield from self._ours(degraded=degraded)

    def _ours(self, *, degraded: bool) -> Iterator[str]:
        name = "fairlead_content_answers_total"
        yield f"# HELP {name} Answers by content, channel, version and status."
        yield f"# TYPE {name} counter"
        sums: Counter[tuple[str, str, int]] = Counter()
        for (found, status), count in self._answers.items():
            sums[(str(found.channel), found.version, status)] += count
        sums.update({("", "", status): count for status, count in self._refusals.items()})
        for (channel, version, status), count in sums.items():
            labels = {"channel": channel, "version": version, "status": str(status)}
            yield f"{name}{_labels(content=self._content, **labels)} {count}"
        name = "fairlead_content_population_degraded"
        yield f"# HELP {name} Whether the population is the last known one, not the present one."
        yield f"# TYPE {name} gauge"
        yield f"{name}{_labels(content=self._content)} {int(degraded)}"


def _labels(**labels: str) -> str:
    shown = (f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items())
    return f"{{{','.join(shown)}}}"
