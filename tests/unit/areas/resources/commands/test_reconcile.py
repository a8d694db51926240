"""`fairlead resources plan`, `apply` and `delete` as they are typed, against an API over HTTP."""

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairlead import bootstrap
from fairlead.cli import app
from fairlead.console.context import CliContext
from tests.simulated_cloud import Behaviour, SimulatedCloud
from tests.unit.areas.resources.commands.test_resources import ROBOT
from tests.unit.areas.resources.swagger import operation, ref, robots
from tests.unit.cli.conftest import Ran

Type = Callable[..., Ran]
ID = "/subscriptions/s/resourceGroups/g/providers/Acme.Toys/robots/r2"


@pytest.fixture
def run(
    state_dir: Path,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Type:
    """Types a command line in this process, of the whole program."""
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "r2").write_text("hunter2\n")
    (tmp_path / "token").write_text("a-token\n")
    monkeypatch.setenv("FAIRLEAD_RESOURCES_SECRETS", str(tmp_path / "secrets"))

    def type_in(*arguments: str) -> Ran:
        capsys.readouterr()
        code = app.run(arguments, CliContext(installation=bootstrap.installation))
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return type_in


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "robots.json"
    delete: dict[str, object] = {"responses": {"204": {}}}
    path.write_text(json.dumps(robots(ROBOT, patch=operation(ref("Robot")), delete=delete)))
    return str(path)


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedCloud]:
    """One beside the commands, which have an event loop of their own."""
    made = SimulatedCloud(Behaviour(hidden=("key",)), tokens={"a-token": 1_000_000})
    loop, ready, end = asyncio.new_event_loop(), threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with made.serving():
            ready.set()
            await end.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert ready.wait(30)
    monkeypatch.setenv("FAIRLEAD_RESOURCES_API_URL", made.url)
    monkeypatch.setenv("FAIRLEAD_RESOURCES_TOKEN_FILE", str(tmp_path / "token"))
    try:
        yield made
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(30)
        with contextlib.closing(loop):
            assert not thread.is_alive()


WANTED = """\
kind: cloud-resource
type: Acme.Toys/robots
resourceId: /subscriptions/s/resourceGroups/g/providers/Acme.Toys/robots/r2
properties:
  size: L
  key: {fromSecret: r2}
"""


def written(tmp_path: Path, name: str, text: str) -> str:
    (tmp_path / name).write_text(text)
    return str(tmp_path / name)


@pytest.fixture
def wanted(run: Type, file: str, tmp_path: Path) -> str:
    run("resources", "ingest", file)
    return written(tmp_path, "r2.yaml", WANTED)


@pytest.mark.requirement("resources R1")
def test_what_is_not_there_would_be_put_without_its_secret_being_shown(
    run: Type, wanted: str, tmp_path: Path
) -> None:
    nothing = written(tmp_path, "none.json", "null")

    then = run("resources", "plan", wanted, "--observed", nothing, "-o", "json")

    (sent,) = json.loads(then.out)["requests"]
    assert (sent["method"], sent["body"]) == ("PUT", {"size": "L", "key": "(secret)"})
    assert sent["reasons"] == [{"path": "", "why": "it does not exist"}]


@pytest.mark.requirement("resources R27", "resources R33")
def test_what_is_there_would_be_patched_where_it_differs(
    run: Type, wanted: str, tmp_path: Path
) -> None:
    shown = written(tmp_path, "shown.json", '{"id": "x", "size": "S", "arms": [{"name": "left"}]}')

    then = run("resources", "plan", wanted, "--observed", shown)

    assert then.out.splitlines() == [
        "PATCH /subscriptions/s/resourceGroups/g/providers/Acme.Toys/robots/r2",
        "PATH  WHY",
        "size  drifted: it is 'S'",
    ]


@pytest.mark.requirement("resources R33")
def test_what_is_as_its_file_says_needs_nothing(run: Type, wanted: str, tmp_path: Path) -> None:
    shown = written(tmp_path, "shown.json", '{"size": "L"}')

    assert run("resources", "plan", wanted, "--observed", shown).out == "nothing to change\n"


def test_mistakes_are_told_at_their_lines_before_anybody_is_asked(
    run: Type, wanted: str, tmp_path: Path
) -> None:
    bad = WANTED.replace("size: L", "sise: L\n  id: a").replace("robots/r2", "robots/../r2")
    file = written(tmp_path, "bad.yaml", bad)

    then = run("resources", "plan", file)

    assert then.code == 3
    assert f"{file}:5:3: properties.sise: no such property" in then.err
    assert "did you mean size?" in then.err
    assert f"{file}:6:3: properties.id: read-only: the API alone says it" in then.err
    assert f"{file}:3:1: resourceId: not an id of Acme.Toys/robots" in then.err


def test_an_api_is_asked_as_somebody(run: Type, wanted: str) -> None:
    then = run("resources", "plan", wanted)

    assert "nobody to ask the API as" in then.err
    assert "hint: name a file with a token in FAIRLEAD_RESOURCES_TOKEN_FILE" in then.err


@pytest.mark.requirement("resources R1", "resources R25", "resources R31")
def test_what_a_plan_shows_is_what_is_sent_and_nothing_else(
    run: Type, wanted: str, tmp_path: Path, cloud: SimulatedCloud
) -> None:
    for text in (WANTED, WANTED.replace("size: L", "size: S")):
        written(tmp_path, "r2.yaml", text)
        (planned,) = json.loads(run("resources", "plan", wanted, "-o", "json").out)["requests"]
        before = len(cloud.writes)

        then = run("resources", "apply", wanted, "-o", "json")

        (sent,) = json.loads(then.out)["requests"]
        assert (sent["method"], sent["reasons"]) == (planned["method"], planned["reasons"])
        ((method, path, _),) = cloud.writes[before:]
        assert (method, path) == (planned["method"], planned["url"])
        assert json.loads(then.out)["phase"] == "Ready"
    assert [said["key"] for _, _, said in cloud.writes[:1] if said] == ["hunter2"]
    for stored in (tmp_path / "state").rglob("*"):
        assert not stored.is_file() or b"hunter2" not in stored.read_bytes()


@pytest.mark.requirement("resources R26")
def test_the_same_file_again_sends_nothing_but_what_others_changed(
    run: Type, wanted: str, cloud: SimulatedCloud
) -> None:
    first = run("resources", "apply", wanted)
    again = run("resources", "apply", wanted)
    cloud.put(ID, {"size": "S", "theirs": 1})
    mended = run("resources", "apply", wanted)

    assert first.out.splitlines()[0] == f"PUT {ID}"
    assert (again.code, again.out) == (0, "nothing to change\n")
    assert mended.out.splitlines() == [f"PATCH {ID}", "PATH  WHY", "size  drifted: it is 'S'"]
    shown = cloud.shown(ID)
    assert shown is not None
    assert (shown["size"], shown["theirs"]) == ("L", 1)


def test_a_resource_is_deleted_and_then_there_is_nothing_to_delete(
    run: Type, wanted: str, cloud: SimulatedCloud
) -> None:
    assert run("resources", "delete", wanted).out == "nothing to change\n"
    run("resources", "apply", wanted)

    then = run("resources", "delete", wanted)
    again = run("resources", "delete", wanted)

    assert then.out.splitlines() == [f"DELETE {ID}"]
    assert (cloud.shown(ID), again.out) == (None, "nothing to change\n")


def test_what_is_to_be_retained_stays(
    run: Type, wanted: str, tmp_path: Path, cloud: SimulatedCloud
) -> None:
    file = written(tmp_path, "r2.yaml", f"{WANTED}deletion: retain\nrefresh: never\n")
    run("resources", "apply", file)

    assert run("resources", "delete", file).out == "nothing to change\n"
    assert cloud.shown(ID) is not None


def test_what_the_api_refuses_ends_in_its_words(
    run: Type, wanted: str, cloud: SimulatedCloud
) -> None:
    cloud.behaviour.style = "azure-async-operation"
    cloud.behaviour.polls = 1
    cloud.failures.append({"code": "QuotaExceeded", "message": "no robots left"})

    then = run("resources", "apply", wanted)

    assert then.code == 3
    assert "QuotaExceeded: no robots left" in then.err


def test_what_is_not_done_in_time_goes_on_with_the_next_run(
    run: Type, wanted: str, cloud: SimulatedCloud
) -> None:
    cloud.behaviour.groups = ()
    late = run("resources", "apply", wanted, "--timeout", "1s")
    cloud.behaviour.groups = ("g",)

    then = run("resources", "apply", wanted, "-o", "json")

    assert late.code == 7
    assert "hint: run it again: it goes on where it is" in late.err
    assert json.loads(then.out)["phase"] == "Ready"
    assert [method for method, _, _ in cloud.writes] == ["PUT"]


def test_a_secret_that_is_written_out_is_refused_at_its_line(
    run: Type, wanted: str, tmp_path: Path
) -> None:
    bad = written(tmp_path, "bad.yaml", WANTED.replace("{fromSecret: r2}", "hunter2"))

    then = run("resources", "apply", bad)

    assert f"{bad}:6:3: properties.key: a secret that is written out" in then.err
    assert "hunter2" not in then.err.replace(str(tmp_path), "")


def test_a_file_may_be_filled_with_what_the_api_chose(
    run: Type, wanted: str, tmp_path: Path, cloud: SimulatedCloud
) -> None:
    cloud.behaviour.hidden = ()
    cloud.put(ID, {"size": "S", "arms": [{"name": "left"}], "key": "other", "theirs": 1})

    assert run("resources", "apply", wanted, "--fill").code == 0

    filled = Path(wanted).read_text()
    assert "arms:\n  - name: left\n" in filled
    assert "fromSecret: r2" in filled
    assert "theirs" not in filled
    cloud.put(ID, {"size": "L", "arms": [], "key": "hunter2"})
    assert "arms" in run("resources", "plan", wanted).out


@pytest.mark.requirement("resources R8")
def test_an_owner_and_a_name_say_the_id(
    run: Type, wanted: str, tmp_path: Path, cloud: SimulatedCloud
) -> None:
    owner = "/subscriptions/s/resourceGroups/g"
    owned = WANTED.replace(f"resourceId: {ID}", f"owner: {owner}\nname: r2")
    both = owned.replace("name: r2", f"name: r2\nresourceId: {ID}")
    stray = owned.replace(f"owner: {owner}", "owner: /subscriptions/s/elsewhere/g")

    then = run("resources", "apply", written(tmp_path, "owned.yaml", owned))

    assert then.out.startswith(f"PUT {ID}\n")
    for bad in (both, stray):
        told = run("resources", "plan", written(tmp_path, "bad.yaml", bad))
        assert "not an id of Acme.Toys/robots" in told.err
