"""The words of the field: those of our own that left stay out, and a package has each name once."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

import pytest

from tests.architecture.sources import ROOT, Source, sources

LEFT = (
    # Types and events, by their exact spelling: a common word in lower case may well be meant.
    "Anchorage", "Berth", "Desk", "Door", "Duties", "Flotilla", "Founded", "Gear", "GoingHome",
    "GoTogether", "Herald", "HomeBegan", "Lexicon", "LookAsked", "MoveBegan", "PartWays",
    "Refounded", "Repertoire", "Shipyard", "Sighted", "Spoken", "Straightened", "Surroundings",
    "TakenBack", "Tempo", "Wanted",
)  # fmt: skip
"""Names that left; what they are called now is in docs and code."""

SAID = (
    r"(?:route|pace)\.share",
    "at home", "being made since", "berths?", "errands?", "flotillas?", "founding", "go home",
    "goes home", "going home", "homing", "second look", "share of (?:the )?requests", "shelf",
    "shipyards?", "stations?", "surroundings", "taken back", "took [^()]{1,20} home",
    "takes? [^()]{1,20} home", "the way home", "went home", "wish(?:es|ed)?",
    "without end measured",
)  # fmt: skip
"""Words and phrases that left, in any case; an underscore or a line's end counts as a space."""

GAP = r"(?:[ _]|\n[ #]*)"
NAMES = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(LEFT)})(?![a-z])")
PHRASES = re.compile(
    rf"(?<![A-Za-z])(?:{'|'.join(SAID).replace(' ', GAP)})(?![A-Za-z])", re.IGNORECASE
)

ELSEWHERE = ("tests/architecture/test_glossary.py",)
"""This list itself."""

HISTORY = ("docs/decisions/",)
TWICE: Mapping[tuple[str, str], str] = {
    ("src/fairlead/analysis", "Name"): "a name in an expression, and a name in a document",
    ("src/fairlead/analysis", "Outliers"): "the rule as it is written, and as it is applied",
}
"""Names that a package has twice, with the reason."""

SORTED = ("src/fairlead/areas/", "src/fairlead/clients/")
"""Here each folder is a package of its own: an area has a port and who is one, an outside system
its own words. Elsewhere a package is all that lies in its folder."""


def test_no_word_that_left_is_in_our_code() -> None:
    ours = (file for file in sources() if not file.path.startswith(ELSEWHERE))

    assert [fault for file in ours for fault in words_that_left(file.path, file.text)] == []


def test_no_word_that_left_is_on_our_pages() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    pages += [page for kind in ("html", "js") for page in (ROOT / "src").rglob(f"*.{kind}")]
    ours = {page.relative_to(ROOT).as_posix(): page for page in sorted(pages)}

    faults = [
        fault
        for path, page in ours.items()
        if not path.startswith(HISTORY) and Path(path).name != "CHANGELOG.md"
        for fault in words_that_left(path, page.read_text(encoding="utf-8"))
    ]

    assert faults == []


def test_no_package_has_a_public_class_name_twice() -> None:
    assert sorted(set(names_twice(sources("src"))) - set(TWICE)) == []


def test_every_exception_for_a_name_is_still_needed() -> None:
    assert set(TWICE) <= set(names_twice(sources("src")))


@pytest.mark.parametrize(
    "text",
    [
        "class TakenBack: ...",
        "raise Rejected('it is going home')",
        "def test_a_bad_version_goes_home() -> None: ...",
        '"""It takes the whole group home."""',
        "# The Wish of a user.",
        "route = AT_HOME",
        "cache ──► queue ──► Door.look(key)",
        "# One of the stations.",
        "weight = state.rollout.route.share",
        "One bad answer takes the version\n    # home.",
    ],
)
def test_a_word_that_left_is_found(text: str) -> None:
    assert len(list(words_that_left("a.py", f"ok\n{text}"))) == 1
    assert next(iter(words_that_left("a.py", f"ok\n{text}"))).startswith("a.py:2: ")


def test_words_that_only_look_alike_are_well() -> None:
    text = "home = Path.home()\nWELL_FOUNDED = 50\nlexicon = codec.events\nthe berthing\na door"

    assert list(words_that_left("a.py", text)) == []


def test_a_name_twice_in_a_package_is_found_and_a_private_one_is_not() -> None:
    engine, area = "src/fairlead/engine", "src/fairlead/areas/lamps"
    files = [
        Source(f"{engine}/one.py", "class Kind: ...\nclass _Own: ..."),
        Source(f"{engine}/store/two.py", "class Kind: ...\nclass _Own: ..."),
        Source(f"{area}/ports.py", "class Platform: ..."),
        Source(f"{area}/local/platform.py", "class Platform: ..."),
    ]

    assert list(names_twice(files)) == [(engine, "Kind")]


def words_that_left(path: str, text: str) -> Iterator[str]:
    for found in (*NAMES.finditer(text), *PHRASES.finditer(text)):
        number = text.count("\n", 0, found.start()) + 1
        yield f"{path}:{number}: {found[0]}"


def names_twice(files: Iterable[Source]) -> Iterator[tuple[str, str]]:
    """Package and name of each public class that more than one of its modules defines."""
    places: dict[tuple[str, str], set[str]] = defaultdict(set)
    for file in files:
        package = package_of(file.path)
        for node in file.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[package, node.name].add(file.path)
    return (place for place, paths in places.items() if len(paths) > 1)


def package_of(path: str) -> str:
    folder = PurePosixPath(path).parent
    return folder.as_posix() if path.startswith(SORTED) else "/".join(folder.parts[:3])
