"""Keys by a word, for indexes over tens of thousands of objects."""

from fairlead.kubernetes.objects import Key


class Index:
    """Keys under a term. Nearly always there is one, and a set for one key is a waste."""

    def __init__(self) -> None:
        self._keys: dict[str, Key | set[Key]] = {}

    def under(self, term: str) -> list[Key]:
        held = self._keys.get(term)
        if held is None:
            return []
        return [held] if isinstance(held, Key) else sorted(held)

    def add(self, term: str, key: Key) -> None:
        held = self._keys.setdefault(term, key)
        if isinstance(held, set):
            held.add(key)
        elif held != key:
            self._keys[term] = {held, key}

    def discard(self, term: str, key: Key) -> None:
        held = self._keys.get(term)
        if isinstance(held, set):
            held.discard(key)
        if not held or held == key:
            self._keys.pop(term, None)
