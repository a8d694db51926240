"""The pages of content as the server writes them; tests/browser shows them at work."""

import datetime as dt
import re

from fairlead.areas.content import pages
from fairlead.areas.content.domain.release.declared_verbs import VERBS
from fairlead.areas.content.requests import SharePoint
from fairlead.engine.testing import START
from fairlead.web.verbs import dialog
from tests.unit.areas.content.test_api import Plane, plane
from tests.unit.web import rig

__all__ = ["plane"]


async def page(site: rig.Site, path: str) -> str:
    answer = await site.client.get(path, headers={"Accept": "text/html"})
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_an_empty_list_says_how_to_fill_it(plane: Plane) -> None:
    text = await page(plane.site, "/releases")

    assert "fairlead content release propose" in text


async def test_a_proposal_has_the_buttons_of_its_review(plane: Plane) -> None:
    await plane.propose(stable="1.0.1")

    text = await page(plane.site, "/releases/gathering")

    assert re.findall(r'id="verb-([a-z]+)"', text) == ["approve", "reject"]
    (revision,) = re.findall(r'data-revision="([0-9a-f]{32})"', text)
    assert f"<dd><code>{revision}</code></dd>" in text
    assert "to port 8000 of this machine" in text
    assert "Awaiting review" in text
    assert "gathering" in await page(plane.site, "/releases")


async def test_a_canary_shows_its_population_who_gets_what_and_the_versions(plane: Plane) -> None:
    await plane.approved(stable="1.0.1")

    text = await page(plane.site, "/releases/gathering?id=%3Cb%3E&compare=true")

    assert "Share of the population from" in text
    assert "&lt;b&gt;</code> gets <b>1.0." in text
    assert "+ &#34;version&#34;: &#34;1.0.2&#34;," in text
    assert 'aria-current="step"' in text


async def test_versions_that_cannot_be_compared_are_told(plane: Plane) -> None:
    await plane.propose("1.0.9", stable="1.0.1")

    text = await page(plane.site, "/releases/gathering?compare=true")

    assert "Not compared: version not found: 1.0.9" in text


def test_every_phase_and_verb_has_words() -> None:
    assert {"Idle", "Proposed", "Paused", "Restoring"} <= {*pages.PHASES}
    asked = {verb.name for verb in VERBS.values() if dialog(verb)}
    assert asked == {"approve", "reject", "promote", "abort"}


def test_the_share_is_drawn_in_steps_over_time() -> None:
    at = [START + dt.timedelta(minutes=minutes) for minutes in (0, 5, 10)]
    shares = [SharePoint(at[0], "0"), SharePoint(at[1], "50")]

    drawn = pages.chart(shares, at[2])

    assert drawn is not None
    assert drawn.line == "M0.0 120L0.0 120L400.0 120L400.0 60L800.0 60L800.0 60"
    assert pages.chart([], at[2]) is None
