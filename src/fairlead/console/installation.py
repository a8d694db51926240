"""What this program is put together from, as commands need it; bootstrap has the real one."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from fairlead import settings as settings_
from fairlead.console.nouns import Noun
from fairlead.engine import machine, service
from fairlead.engine.store import protocol


@runtime_checkable
class Installation(Protocol):
    """Settings, store and engine of one installation."""

    def settings(self, environment: Mapping[str, str]) -> settings_.Settings: ...

    def store(self, chosen: settings_.StoreSettings) -> protocol.Store:
        """The store that the settings name; nothing is opened yet."""
        ...

    def engine(
        self, chosen: settings_.Settings, kept: protocol.Store, *, perform: bool
    ) -> service.Engine: ...

    def nouns(self) -> Sequence[Noun]:
        """What `get`, `watch` and the verbs may name."""
        ...

    @property
    def machines(self) -> Sequence[machine.AnyMachine]: ...

    @property
    def projection_names(self) -> Sequence[str]: ...
