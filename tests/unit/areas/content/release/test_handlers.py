"""Effects of a release: performed by ports, and whatever goes wrong is told as an answer."""

import datetime as dt
import errno
from dataclasses import dataclass, field
from typing import Any

import pytest

from fairlead import errors
from fairlead.analysis.conditions import Answer, Answered
from fairlead.areas.content.domain.population import Population, Share
from fairlead.areas.content.domain.release import messages
from fairlead.areas.content.domain.release.draft import stream
from fairlead.areas.content.domain.release.place import Place, Versions
from fairlead.areas.content.release import handlers
from fairlead.areas.content.release.ports import Observed, Progress
from fairlead.checks import spec
from fairlead.checks.registry import Registry
from fairlead.checks.spec import PROMETHEUS, Check
from fairlead.checks.subject import Side, Subject, Version
from fairlead.engine.outbox import EffectContext
from fairlead.engine.testing import START
from tests.unit.areas.content.domain.release.samples import CHECK, PLACE

VERSIONS = Versions("1.0.1", "1.0.2")
SET = messages.SetShare("gathering", 7, PLACE, "1.0.2-1", Share(1000))
DEPLOY = messages.Deploy("gathering", 7, PLACE, VERSIONS)


@dataclass
class World:
    """Both ports at once, which fail where a test says so."""

    trouble: Exception | None = None
    found: Observed = Observed(Progress.READY)
    calls: list[object] = field(default_factory=list)

    async def set(self, name: str, place: Place, chosen: Population) -> None:
        self._note(name, place, chosen)

    async def deploy(self, name: str, place: Place, versions: Versions) -> Observed:
        self._note(name, place, versions)
        return self.found

    def _note(self, *call: object) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.calls.append(call)


@dataclass
class Source:
    """Answers every check, and keeps about what it was asked."""

    about: list[Subject] = field(default_factory=list)

    async def ask(self, check: Check, about: Subject) -> Answer:
        assert check == CHECK
        self.about.append(about)
        return Answered(0.98)


async def perform(
    world: World, effect: Any, key: str = "gathering", checks: Registry | None = None
) -> object | None:
    made = handlers.ReleasePorts(world, world, checks or Registry(), lambda: START)
    context = EffectContext(stream(key), "key", 1)
    return await handlers.handlers(made)[type(effect)].perform(effect, context)


async def test_a_share_and_a_deployment_are_confirmed_under_their_order() -> None:
    world = World()

    assert await perform(world, SET) == messages.ShareConfirmed(7)
    assert await perform(world, DEPLOY) == messages.DeploymentReady(7)
    assert world.calls == [
        ("gathering", PLACE, Population("1.0.2-1", Share(1000))),
        ("gathering", PLACE, VERSIONS),
    ]


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        (errors.Rejected("no: https://me:secret@x/", hint="wait"), r"no: https://…@x/"),
        (TimeoutError(), r"no answer within \d+ s"),
        (OSError(errno.ENOSPC, "No space left on device"), "cannot write: No space left on device"),
    ],
)
async def test_trouble_is_asked_for_again_and_tells_no_secrets(
    trouble: Exception, told: str
) -> None:
    for effect in (SET, DEPLOY):
        with pytest.raises(errors.Unavailable, match=told):
            await perform(World(trouble), effect)


async def test_a_deployment_waits_in_the_outbox_and_tells_that_it_failed() -> None:
    with pytest.raises(errors.Unavailable, match="not ready yet: starting"):
        await perform(World(found=Observed(Progress.WAITING, "starting")), DEPLOY)

    failed = await perform(World(found=Observed(Progress.FAILED, "no tag")), DEPLOY)
    assert failed == messages.DeploymentFailed(7, "no tag")


async def test_checks_are_asked_about_both_versions() -> None:
    effect = messages.Measure(
        "gathering", 3, (CHECK,), VERSIONS, Share(1000), START, dt.timedelta(hours=2), 2
    )

    answer = await perform(World(), effect)

    assert isinstance(answer, messages.Judged)
    (found,) = answer.findings
    assert (answer.ticket, found.check) == (3, "archives")
    assert "no such metric source here: prometheus" in found.reason


@pytest.mark.parametrize(("share", "weight"), [(1, 0.01), (50, 0.5), (1250, 12.5)])
async def test_checks_are_told_the_share_as_it_is(share: int, weight: float) -> None:
    bake = dt.timedelta(hours=2)
    effect = messages.Measure("gathering", 3, (CHECK,), VERSIONS, Share(share), START, bake, 2)
    source = Source()

    await perform(World(), effect, checks=Registry(PROMETHEUS, {PROMETHEUS: source}))

    assert [each.weight for each in source.about] == [weight]


def test_queries_may_ask_for_content_version_and_channel() -> None:
    both = Version("1.0.1", "1.0.1"), Version("1.0.2", "1.0.2")
    about = Subject("gathering", 1, *both, 10, START)

    names = handlers.named(about, Side.CANARY)

    assert names.arguments == {"content": "gathering", "version": "1.0.2", "channel": "canary"}
    assert spec.REQUEST_COUNT not in names.metrics


async def test_a_stream_asks_for_its_own_content_only() -> None:
    with pytest.raises(errors.Rejected, match="asks for another content"):
        await perform(World(), SET, "other")
