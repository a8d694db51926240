"""What is counted, under which names."""

from fairlead.areas.content.domain.edition import Body
from fairlead.areas.content.domain.population import Channel
from fairlead.areas.content.service import answers
from fairlead.areas.content.service.metrics import Tally


def test_counts_are_told_by_file_channel_version_and_status() -> None:
    tally = Tally("gathering")
    v2 = answers.answer(Body('v2/"a\\.json', b"{}"), "1.0.2", Channel.CANARY, "User-Agent")
    v1 = answers.answer(Body("v1/rules.json", b"{}"), "1.0.1", Channel.STABLE, "User-Agent")

    tally.served(v2, 200)
    tally.served(v2, 304)
    tally.served(v1, 200)
    tally.refused(400)
    lines = tally.text(degraded=True).splitlines()

    name = "fairlead_content_answers_total"
    assert [line for line in lines if not line.startswith("#")] == [
        'io_gathering_remote_configuration{file="canary/v2/\\"a\\\\.json",version="1.0.2"} 2',
        f'{name}{{content="gathering",channel="canary",version="1.0.2",status="200"}} 1',
        f'{name}{{content="gathering",channel="canary",version="1.0.2",status="304"}} 1',
        f'{name}{{content="gathering",channel="stable",version="1.0.1",status="200"}} 1',
        f'{name}{{content="gathering",channel="",version="",status="400"}} 1',
        'fairlead_content_population_degraded{content="gathering"} 1',
    ]
