"""A verb is declared once: no other file names it, so a new one touches three files of `src`."""

import re
from collections.abc import Iterator, Mapping

import pytest

from fairlead.areas.rollouts.domain.declared_verbs import VERBS
from fairlead.values import Verb
from tests.architecture.sources import ROOT

ROLLOUTS = "src/fairlead/areas/rollouts/"
DOMAIN = f"{ROLLOUTS}domain"
DECLARED = f"{DOMAIN}/declared_verbs.py"
TOUCHED = {DECLARED, f"{DOMAIN}/messages.py", f"{DOMAIN}/verbs.py"}

ELSEWHERE: Mapping[tuple[str, str], str] = {
    ("abort", "src/fairlead/analysis/limits.py"): "what a check without samples leads to",
    ("pause", "src/fairlead/analysis/limits.py"): "what a check without samples leads to",
    ("pause", "src/fairlead/areas/rollouts/pages.py"): "an icon",
    ("pause", "src/fairlead/web/templates/marks.html"): "an icon",
    ("pause", "src/fairlead/cli/demo/story.py"): "a field of the strategy",
    ("pause", "src/fairlead/areas/rollouts/kubernetes/kinds.py"): "taken before what else is asked",
    ("retry", "src/fairlead/cli/timers.py"): "what a dead timer may be told, too",
    ("delete", "src/fairlead/areas/rollouts/kubernetes/kinds.py"): "a right in the cluster",
    ("delete", "src/fairlead/kubernetes/client/client.py"): "a method of the API server",
    ("delete", "src/fairlead/kubernetes/rbac.py"): "a right in the cluster",
    ("resume", "src/fairlead/areas/rollouts/kubernetes/kinds.py"): "waits for spec.paused to end",
}
"""Where a verb's name stands for something else, or has a rule of its own."""


def test_no_file_but_the_declaration_names_a_verb() -> None:
    found = {(verb, path) for verb in VERBS for path in _files(f"[\"']{verb}[\"']")}

    assert found - {(verb, DECLARED) for verb in VERBS} == set(ELSEWHERE)


@pytest.mark.parametrize("verb", [VERBS["approve"], VERBS["promote"], VERBS["retry"]])
def test_a_verb_without_a_rule_of_its_own_is_in_three_files(verb: Verb) -> None:
    places = rf"[\"']{verb.name}[\"']|(?:class |messages\.){verb.command}\b"

    others = {path for name, path in ELSEWHERE if name == verb.name}
    assert set(_files(places)) - others == TOUCHED


def _files(pattern: str) -> Iterator[str]:
    for kind in ("py", "html", "js"):
        for file in (ROOT / "src").rglob(f"*.{kind}"):
            path = file.relative_to(ROOT).as_posix()
            # Another area may well have a verb of the same name.
            other = path.startswith("src/fairlead/areas/") and not path.startswith(ROLLOUTS)
            if not other and re.search(pattern, file.read_text(encoding="utf-8")):
                yield path
