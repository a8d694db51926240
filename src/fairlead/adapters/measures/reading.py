"""What is wrong with a check, before anything is asked: for admission, for `deploy`, for people."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec

from fairlead import errors
from fairlead.adapters.measures import gates, queries
from fairlead.adapters.measures.hooks import Hosts
from fairlead.adapters.measures.servers import Servers
from fairlead.domain.analysis import fields
from fairlead.domain.rollouts.ports import Names
from fairlead.domain.rollouts.spec import Check, Source

MOST_METRICS = 100
"""Each metric is two queries in every round."""

Problem = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Reader:
    """Knows what this installation can ask."""

    servers: Servers
    hosts: Hosts

    def problems(self, check: Check, rollout: str, names: Names) -> tuple[Problem, ...]:
        """Pairs of a field of the check and what is wrong with it; none if it can be asked.

        `names` are those of either slot, as the platform would give them.
        """
        match check.source:
            case Source.QUERY:
                found = (*self._server(check, rollout), *_query("query", check, check.query, names))
            case Source.JUDGE:
                found = (*self._server(check, rollout), *_judge(check, names))
            case Source.GATE:
                found = (*_tried("query", lambda: self.hosts.check(check.query)),)
            case Source.WEB:
                found = (*self._web(check, names),)
        return found

    def _server(self, check: Check, rollout: str) -> Iterator[Problem]:
        field = "server" if check.server else "query"
        yield from _tried(field, lambda: self.servers.check(check.server, rollout))

    def _web(self, check: Check, names: Names) -> Iterator[Problem]:
        given = queries.sample(check, names)
        yield from _tried("query", lambda: self.hosts.check(gates.address(check.query, given)[0]))


def _judge(check: Check, names: Names) -> Iterator[Problem]:
    metrics = msgspec.convert(check.judge, fields.Config).metrics
    if len(metrics) > MOST_METRICS:
        yield "judge.metrics", f"more than {MOST_METRICS} metrics: {len(metrics)}"
        return
    for index, metric in enumerate(metrics):
        path = f"judge.metrics[{index}].query"
        try:
            query = queries.of_metric(metric)
        except errors.Rejected as error:
            yield path, _told(error)
        else:
            yield from _query(path, check, query, names)


def _query(path: str, check: Check, query: str, names: Names) -> Iterator[Problem]:
    try:
        made = queries.rendered(query, names.provider, queries.sample(check, names))
    except errors.Rejected as error:
        yield path, _told(error)
        return
    wrong = queries.unclosed(made)
    if wrong is not None:
        yield path, f"not closed, or closed without a beginning: {wrong}"


def _tried(path: str, attempt: Callable[[], object]) -> Iterator[Problem]:
    try:
        attempt()
    except errors.Rejected as error:
        yield path, _told(error)


def _told(error: errors.Rejected) -> str:
    return f"{error.message}; {error.hint}"
