"""Write deploy/: the plain manifests, and what the Helm chart takes from code.

`make manifests` writes the files, --check compares. The chart's own templates are written by
hand; a test renders them with Helm's engine and compares them with the plain manifests.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fairlead import __version__, bootstrap
from fairlead.bootstrap import operator as wiring
from fairlead.kubernetes import rbac
from fairlead.kubernetes.install import manifests, workload
from fairlead.kubernetes.kinds import Kind

ROOT = Path(__file__).resolve().parent.parent
PLAIN = Path("deploy/kubernetes")
CHART = Path("deploy/helm/fairlead")
OPTIONS = workload.Options(image=f"fairlead:{__version__}")


def files() -> dict[Path, str]:
    """Every generated file and what it should hold."""
    kinds = wiring.with_kinds(bootstrap.installation()).kinds
    plain = {PLAIN / "operator.yaml": manifests.text(manifests.documents(kinds, OPTIONS))}
    return plain | {CHART / path: text for path, text in of_chart(kinds).items()}


def of_chart(kinds: Sequence[Kind]) -> dict[Path, str]:
    """What the chart's templates take from code: kinds, rules, webhooks and policies."""
    made = {
        Path("files/rules.yaml"): manifests.text([{"rules": rbac.rules(kinds)}]),
        Path("files/policies.yaml"): manifests.text([{"policies": manifests.policies(kinds)}]),
        Path("files/webhooks.yaml"): manifests.text([{"webhooks": manifests.reviews(kinds)}]),
    }
    for kind in kinds:
        name = f"{kind.api}.yaml"
        made[Path("crds") / name] = manifests.text([rbac.definition(kind)])
    return made


def stale() -> list[Path]:
    """Files that are not as the code would write them, and files that nobody makes any more."""
    made = files()
    changed = [path for path, text in made.items() if _read(ROOT / path) != text]
    kept = {ROOT / path for path in made}
    left = [
        path.relative_to(ROOT)
        for folder in (PLAIN, CHART / "crds", CHART / "files")
        for path in sorted((ROOT / folder).glob("*.yaml"))
        if path not in kept
    ]
    return [*changed, *left]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.manifests", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if anything is old")
    asked = parser.parse_args(arguments)
    found = stale()
    for path in found:
        print(path)
    if asked.check:
        return 1 if found else 0
    made = files()
    for path in found:
        if path not in made:
            (ROOT / path).unlink()
            continue
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(made[path], encoding="utf-8")
    return 0


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
