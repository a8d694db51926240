"""Who asks: the id of a cluster in its User-Agent, found as the original finds it."""

_MARK = "cluster/"


def cluster(user_agent: str) -> str:
    """What follows the first `cluster/`, up to a space and a comma; else nothing."""
    _, found, rest = user_agent.partition(_MARK)
    return rest.partition(" ")[0].partition(",")[0] if found else ""
