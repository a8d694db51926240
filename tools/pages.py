"""The pages of docs/ that are made from code: `make docs` writes them, --check compares.

To add a page, write one function that returns its text, under `@page(path, source)`.
"""

import argparse
import functools
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from fairlead import bootstrap
from fairlead.areas.deployments.specs import application, environment, schedule, target
from fairlead.cli import serve_web
from fairlead.web import app
from tools import reference, requirements

ROOT = Path(__file__).resolve().parent.parent
PAGES: dict[str, Callable[[], str]] = {}


def page(path: str, source: str) -> Callable[[Callable[[], str]], Callable[[], str]]:
    """Register the function below as the maker of `path`; `source` says what to edit instead."""

    def register(make: Callable[[], str]) -> Callable[[], str]:
        PAGES[path] = lambda: f"<!-- Made by `make docs` from {source}. -->\n\n{make().strip()}\n"
        return make

    return register


@page("docs/reference/requirements.md", "tests/requirements/ and the marks in tests/")
def requirements_page() -> str:
    marks = requirements.shown()
    parts = [REQUIREMENTS_INTRO, *(area_table(area, marks) for area in requirements.areas())]
    return "\n\n".join(parts)


def openapi() -> str:
    return (
        json.dumps(
            app.described(serve_web.mounted(bootstrap.installation())).openapi(),
            indent=2,
            ensure_ascii=False,
        )
        + "\n"
    )


# No first line that says who made it: JSON has no comments.
PAGES["docs/reference/openapi.json"] = openapi


def schema(of: type) -> str:
    """What editors check a file against, and complete it from."""
    return json.dumps(msgspec.json.schema(of), indent=2, ensure_ascii=False) + "\n"


for _name, _of in (
    ("application", application.Application),
    ("environment", environment.Environment),
    ("cluster", environment.Cluster),
    ("push-target", target.PushTarget),
    ("schedule", schedule.Schedule),
):
    PAGES[f"docs/reference/{_name}.schema.json"] = functools.partial(schema, _of)


@page("docs/reference/settings.md", "src/fairlead/settings.py")
def settings_page() -> str:
    return reference.settings_page()


@page("docs/reference/commands.md", "src/fairlead/cli/")
def commands_page() -> str:
    return reference.commands_page()


@page("docs/reference/errors.md", "src/fairlead/errors.py")
def errors_page() -> str:
    return reference.errors_page()


REQUIREMENTS_INTRO = """\
# Requirements

What each area must do, and the tests that show it. An id without a test is not shown yet.
When an area says that it is done, the gate refuses an id without a test. To carry an id, a
test is marked `@pytest.mark.requirement("canary R12")`."""


def area_table(area: requirements.Area, marks: tuple[requirements.Shown, ...]) -> str:
    tests: dict[str, list[str]] = {requirement: [] for requirement in area.ids()}
    for mark in marks:
        if mark.requirement in tests:
            tests[mark.requirement].append(link_to(mark))
    proven = sum(1 for links in tests.values() if links)
    state = "done" if area.done else "not yet done"
    rows = (
        f"| {number} | {text} | {'<br>'.join(tests[f'{area.name} {number}']) or 'none yet'} |"
        for number, text in area.requirements.items()
    )
    head = f"## {area.title}\n\nArea `{area.name}`: {state}; {proven} of {len(tests)} have a test."
    return "\n".join((f"{head}\n", "| id | what must hold | shown by |", "|---|---|---|", *rows))


def link_to(mark: requirements.Shown) -> str:
    name = mark.test or Path(mark.file).name
    return f"[`{name}`](../../{mark.file})"


def stale(root: Path = ROOT) -> tuple[str, ...]:
    """Pages whose file is absent or differs from what the code says now."""
    return tuple(path for path, make in PAGES.items() if _read(root / path) != make())


def write(root: Path = ROOT) -> tuple[str, ...]:
    changed = stale(root)
    for path in changed:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(PAGES[path](), encoding="utf-8")
    return changed


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.pages", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if stale")
    if not parser.parse_args(arguments).check:
        for path in write(root):
            print(f"wrote {path}", file=sys.stderr)
        return 0
    found = stale(root)
    for path in found:
        print(f"error: page is stale: {path}\nhint: run make docs", file=sys.stderr)
    return 1 if found else 0


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
