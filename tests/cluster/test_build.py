"""Finding and building the parts, with a stand-in for the Go command: it is quick and obeys."""

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead import errors
from tools.cluster import build, parts

_ROOT = Path(__file__).parents[2]
# Notes what it is asked, then does what the real one would leave behind.
_GO = """#!/bin/sh
set -e
case "$1 $2" in
"env GOVERSION") echo go9.9 ;;
"mod download") printf '{"Dir": "%s"}' "$GO_MODULES" ;;
build*)
    while [ "$1" != -o ]; do shift; done
    echo "$3" >> "$GO_NOTES"
    echo some/package >&2
    test "$3" != "$GO_HANGS_AT" || { echo $$ > "$GO_PIPE"; exec sleep 60; }
    test "$3" != "$GO_FAILS_AT" || { echo "no such package" >&2; exit 1; }
    echo program > "$2"; chmod +x "$2" ;;
esac
"""


class Machine:
    """A machine with the stand-in on PATH, and an empty cache."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.notes = folder / "notes"
        self.cache = folder / "cache"
        self._patch = patch
        go = folder / "bin" / "go"
        go.parent.mkdir()
        go.write_text(_GO)
        go.chmod(0o755)
        for files in (*parts.FILES, *parts.EXTRA_FILES):
            source = folder / "modules" / files.pattern.replace("*", "one")
            source.parent.mkdir(parents=True, exist_ok=True)
            source.write_text("kind: Something\n")
        self.set("PATH", f"{go.parent}:{os.environ['PATH']}")
        self.set("GO_NOTES", str(self.notes))
        self.set("GO_MODULES", str(folder / "modules"))
        self.set("FAIRLEAD_CACHE", str(self.cache))
        patch.delenv("KUBEBUILDER_ASSETS", raising=False)

    def set(self, name: str, value: str) -> None:
        self._patch.setenv(name, value)
        parts.go_version.cache_clear()

    def compiled(self) -> list[str]:
        return self.notes.read_text().split() if self.notes.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


@pytest.fixture(autouse=True)
def _forget_the_stand_in() -> object:
    yield
    parts.go_version.cache_clear()


def test_all_parts_are_made_the_first_needed_first(machine: Machine) -> None:
    made = build.build()

    assert made.missing() == ()
    assert machine.compiled() == [program.package for program in parts.PROGRAMS]
    assert machine.compiled()[0].startswith("go.etcd.io/")
    assert machine.compiled()[1].endswith("/kube-apiserver")
    assert [file.name for file in made.folder("crds/gateway").iterdir()] == ["one.yaml"]


def test_a_data_plane_is_made_only_when_asked_for(machine: Machine) -> None:
    build.build()
    plain = parts.find().missing_extras()

    made = build.build(extras=True)

    assert plain == (parts.GATEWAY.name, parts.GATEWAY_CRDS.folder)
    assert made.missing_extras() == ()
    assert machine.compiled()[len(parts.PROGRAMS) :] == [parts.GATEWAY.package]
    assert made.program(parts.GATEWAY.name).exists()


def test_what_is_there_is_not_made_again(machine: Machine) -> None:
    build.build()
    build.build()

    assert len(machine.compiled()) == len(parts.PROGRAMS)


def test_a_failed_compilation_is_told_and_leaves_no_program(machine: Machine) -> None:
    machine.set("GO_FAILS_AT", "k8s.io/kubernetes/cmd/kube-apiserver")

    with pytest.raises(errors.Unavailable, match="cannot compile kube-apiserver: some"):
        build.build()

    assert list(parts.find().programs) == ["etcd"]


def test_the_next_build_goes_on_where_one_failed_and_removes_what_it_left(
    machine: Machine,
) -> None:
    machine.set("GO_FAILS_AT", "k8s.io/kubernetes/cmd/kube-apiserver")
    with pytest.raises(errors.Unavailable):
        build.build()
    left = parts.cache_folder() / "kwok.unfinished"
    left.write_text("half a program")
    (parts.cache_folder() / "crds" / "istio.unfinished").mkdir(parents=True)

    machine.set("GO_FAILS_AT", "")
    made = build.build()

    assert made.missing() == ()
    assert machine.compiled().count(parts.PROGRAMS[0].package) == 1
    assert not list(parts.cache_folder().rglob("*.unfinished"))


def test_two_builders_at_once_make_each_part_once(machine: Machine) -> None:
    command = [sys.executable, "-m", "tools.cluster", "build"]
    builders = [subprocess.Popen(command, cwd=_ROOT, stderr=subprocess.DEVNULL) for _ in range(3)]

    assert [builder.wait(timeout=60) for builder in builders] == [0, 0, 0]

    assert machine.compiled() == [program.package for program in parts.PROGRAMS]


def test_a_killed_builder_takes_the_compiler_with_it_and_frees_the_lock(
    machine: Machine, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    machine.set("GO_PIPE", str(pipe))
    machine.set("GO_HANGS_AT", "k8s.io/kubernetes/cmd/kube-apiserver")
    command = [sys.executable, "-m", "tools.cluster", "build"]
    with subprocess.Popen(command, cwd=_ROOT, stderr=subprocess.DEVNULL) as builder:
        compiler = os.pidfd_open(int(_read(pipe)))
        builder.kill()
    ended, _, _ = select.select([compiler], [], [], 20)
    os.close(compiler)

    machine.set("GO_HANGS_AT", "")
    made = build.build()

    assert ended
    assert made.missing() == ()


def test_assets_of_envtest_are_taken_first_and_only_the_rest_is_made(
    machine: Machine, tmp_path: Path
) -> None:
    assets = tmp_path / "assets"
    assets.mkdir()
    for name in ("etcd", "kube-apiserver", "kubectl"):
        (assets / name).touch(mode=0o755)
    machine.set("KUBEBUILDER_ASSETS", str(assets))

    made = build.build()

    assert made.program("etcd") == assets / "etcd"
    assert made.program("kwok").parent == parts.cache_folder()
    assert [package.rsplit("/")[-1] for package in machine.compiled()] == [
        "kube-controller-manager",
        "kube-scheduler",
        "kwok",
        "helm",
    ]


def test_without_go_the_error_says_what_to_do(machine: Machine) -> None:
    machine.set("PATH", "/nonexistent")

    with pytest.raises(errors.Unavailable, match="go is not on PATH") as refused:
        build.build()

    assert "install Go 1.26" in refused.value.hint
    assert "etcd, kube-apiserver" in refused.value.hint


def test_without_go_the_programs_of_an_earlier_build_are_found(machine: Machine) -> None:
    built = build.build()

    machine.set("PATH", "/nonexistent")

    assert parts.find() == built


def test_the_cache_is_named_after_the_pins_and_the_go_version(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ours = parts.cache_folder()
    for name in ("go.mod", "go.sum", "crds/go.mod", "crds/go.sum"):
        (tmp_path / "pins" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "pins" / name).write_text("another pin")

    monkeypatch.setattr(parts, "RIG", tmp_path / "pins")

    assert ours.parent == machine.cache / "cluster"
    assert ours.name.endswith("-go9.9")
    assert parts.cache_folder() != ours


def test_the_cache_lies_where_caches_lie(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("FAIRLEAD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    by_standard = parts.cache_folder()
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    assert by_standard.parent == tmp_path / "xdg" / "fairlead" / "cluster"
    assert parts.cache_folder().parent == tmp_path / "home/.cache/fairlead/cluster"


def test_a_part_that_is_not_there_is_refused_with_the_way_to_get_it(machine: Machine) -> None:
    nothing = parts.find()

    with pytest.raises(errors.NotFound, match="not built: kwok") as no_program:
        nothing.program("kwok")
    with pytest.raises(errors.NotFound, match="not fetched: crds/istio"):
        nothing.folder("crds/istio")

    assert "make test-cluster" in no_program.value.hint


def _read(pipe: Path) -> bytes:
    """What the other side writes, as soon as it does."""
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        select.select([reader], [], [], 20)
        return os.read(reader, 100)
    finally:
        os.close(reader)
