"""What is found by its repository, and how many that may be."""

from pathlib import Path

import msgspec
import pytest

from fairlead import bootstrap, errors
from fairlead.areas.deployments.domain.definition import Store
from fairlead.areas.deployments.registry import definitions
from fairlead.areas.deployments.specs import reading
from tests import engines
from tests.unit.areas.deployments.specs.test_target import TARGET
from tests.unit.web import rig


async def test_targets_are_found_whatever_their_number_but_for_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(definitions, "MOST_TARGETS", 3)
    async with rig.site(tmp_path, bootstrap.installation()) as site:

        async def add(name: str) -> None:
            read = reading.push_target({**TARGET, "application": name})
            content = msgspec.to_builtins(read)
            await engines.tell(site.engine, f"push-target/prod/{name}", Store(content, "ann"))

        async def found(provider: str, repository: str) -> list[str]:
            listed = await site.engine.read(
                lambda session: definitions.targets(session, provider, repository)
            )
            return [each.application for each in listed]

        for name in ("shop", "till", "cart"):
            await add(name)

        assert await found("github", "ACME/shop") == ["cart", "shop", "till"]
        assert await found("gitlab", "acme/shop") == []
        assert await found("github", 'x" and environment="prod') == []
        await add("desk")
        with pytest.raises(errors.Rejected, match="more than 3 push targets"):
            await found("github", "acme/shop")
