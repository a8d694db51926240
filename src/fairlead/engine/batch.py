"""Many streams' decisions in one transaction, decided in memory.

A batch is told what the store knows, takes submissions one by one, and collects what is to
be written. A submission that fails leaves no mark on the others: everything it touched is
put back. Commands that machines send to each other are taken within the same submission.
"""

import collections
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from fairlead import errors
from fairlead.engine import attributes, children, clock, codec, messages
from fairlead.engine import machine as machines
from fairlead.engine.store import protocol

MAX_SENDS = 10_000
"""One submission may not set off more commands than this; more is a loop between machines."""


class Unloaded(Exception):
    """Machines sent to streams that the batch does not know yet: load them, decide again."""

    def __init__(self, streams: Sequence[messages.StreamName]) -> None:
        super().__init__(*streams)
        self.streams = streams


class Stale(Exception):
    """The effect or timer this settles is not ours any more; somebody else sees to it."""


class Beyond(errors.Newer):
    """A machine sent to a stream that only a newer program can read; its own is readable here."""


@dataclass(frozen=True, slots=True)
class RegisteredMachine:
    """A machine with its codec, as the engine carries it around."""

    machine: machines.AnyMachine
    codec: codec.Codec


class MachineRegistry:
    """All machines, ready to be decided by."""

    def __init__(self, known: machines.Machines) -> None:
        self.machines = known
        self._by_name = {each.name: RegisteredMachine(each, codec.Codec(each)) for each in known}
        for each in known:
            attributes.check(each)
        children.check(known)

    def of(self, stream: str) -> RegisteredMachine:
        name = stream.partition("/")[0]
        return self._by_name.get(name) or self._refuse(name)

    def ordered(self) -> list[str]:
        return [name for name, each in self._by_name.items() if each.machine.effects_in_order]

    def _refuse(self, name: str) -> RegisteredMachine:
        self.machines.named(name)
        raise AssertionError(name)


class PendingEffect(msgspec.Struct, frozen=True):
    """An effect fresh from a decision, still as the object the machine made."""

    hold: messages.Hold
    stream: messages.StreamName
    effect: object
    attempts: int = 0
    queue: str = ""
    epoch: str = ""


class EventRecord(NamedTuple):
    """One event of a batch, as a log line names it."""

    stream: str
    seq: int
    event: str
    cause: str


@dataclass(slots=True)
class _Head:
    """Where a stream stands within this batch."""

    name: messages.StreamName
    registered: RegisteredMachine
    id: int
    seen: int
    version: int
    state: Any
    ended: bool
    pending: int
    queue: str = ""
    touched: bool = False
    before: Any = None
    """The state that the store has; None for a stream that it has not."""

    def copy(self) -> "_Head":
        return _Head(
            self.name, self.registered, self.id, self.seen, self.version, self.state, self.ended,
            self.pending, self.queue, self.touched, self.before,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Identity:
    """Who decides: the time, and for one that also performs effects its fence and how many."""

    now: datetime
    fence: int | None = None
    room: Mapping[tuple[str, type], int] = field(default_factory=dict)
    """How many new effects it can hold, by queue and type; what is absent it does not perform."""

    epoch: str = ""


_TimerName = tuple[int, str]


@dataclass(slots=True)
class _Marks:
    """How things were before a submission, to put them back if it fails."""

    lengths: tuple[int, ...] = ()
    heads: dict[str, _Head] = field(default_factory=dict)
    timers: dict[_TimerName, protocol.NewTimer | None] | None = None


class Batch:
    """Submissions taken together."""

    def __init__(
        self,
        registry: MachineRegistry,
        identity: Identity,
        loaded: protocol.Loaded,
        number: Callable[[int], Sequence[int]],
    ) -> None:
        self._registry = registry
        self._identity = identity
        self._number = number
        self._room = dict(identity.room)
        self._held = loaded.held
        self._commands = {row.id: row for row in loaded.commands}
        self._heads: dict[str, _Head] = {}
        self._broken: dict[str, errors.FairleadError] = {}
        self._marks = _Marks()
        self._settled: set[messages.Hold | messages.TimerKey] = set()
        self._timers: dict[_TimerName, protocol.NewTimer | None] = {}
        self.writes = protocol.Writes(clock.to_millis(identity.now))
        self.fresh: list[PendingEffect] = []
        self.left = False
        """Whether effects were left unheld that this worker could have performed."""

        self.size = 0
        """Bytes of events and effects decided so far."""

    def know(self, asked_for: Iterable[str], rows: Sequence[protocol.StreamRow]) -> None:
        """Take in streams from the store; those it does not have are new."""
        # A stream that cannot be read fails for those who ask for it, not for the batch.
        heads, broken = self._heads, self._broken
        for row in rows:
            try:
                heads[row.name] = self._old(row)
            except errors.FairleadError as error:
                broken[row.name] = error
        new = [name for name in asked_for if name not in heads and name not in broken]
        for name, number in zip(new, self._number(len(new)) if new else (), strict=True):
            try:
                heads[name] = self._new(messages.StreamName(name), number)
            except errors.FairleadError as error:
                broken[name] = error

    def take(self, submission: messages.Submission) -> messages.Receipt:
        """Decide one submission; any failure leaves the batch as it was."""
        self._marks = _Marks(self._lengths())
        try:
            return self._take(submission)
        except BaseException:
            self._undo()
            raise

    def settle(self, key: messages.Hold) -> None:
        """An effect that needs no answer is done."""
        self._marks = _Marks(self._lengths())
        self._claim(key)
        self.writes.settled.append(key)

    def finish(self) -> protocol.Writes:
        """The writes of the whole batch, each touched stream once."""
        for head in self._heads.values():
            if head.touched:
                self._write_head(head)
        if self.writes.withdrawn:
            gone = self.writes.drop_withdrawn()
            self.fresh = [asked for asked in self.fresh if asked.hold.key not in gone]
        for (stream, name), timer in self._timers.items():
            if timer is None:
                self.writes.cancelled.append((stream, name))
            else:
                self.writes.timers.append(timer)
        return self.writes

    def told(self) -> list[EventRecord]:
        """Every event of the batch with its stream's name and what caused it."""
        names = {head.id: head.name for head in self._heads.values()}
        return [
            EventRecord(names[event.stream], event.seq, event.type, event.cause)
            for event in self.writes.events
        ]

    def _take(self, submission: messages.Submission) -> messages.Receipt:
        digest = ""
        if submission.settles is None:
            # Before the stream is read: what was answered is answered, whoever can read it now.
            digest = digest_of(self._registry.of(submission.stream), submission)
            known = self._commands.get(submission.id)
            if known is not None:
                return _answer_again(submission, known, digest)
        head = self._head(submission.stream)
        if submission.settles is not None:
            self._settle(submission.settles, head)
        receipt = self._run(head, submission)
        if submission.settles is None and (receipt.events or submission.remember):
            self._remember(submission, head, digest, receipt)
        return receipt

    def _run(self, head: _Head, submission: messages.Submission) -> messages.Receipt:
        """The command itself, then whatever machines send each other because of it."""
        first = head.version + 1
        todo = collections.deque([(head, submission.command, submission.queue)])
        last, taken = head.version, 0
        while todo:
            target, command, queue = todo.popleft()
            sends = self._decide(target, command, submission.id, queue)
            if taken == 0:
                last = target.version
            taken += 1
            if taken + len(todo) + len(sends) > MAX_SENDS:
                raise errors.Rejected(
                    f"more than {MAX_SENDS} commands from one: {submission.id}",
                    hint="two machines send to each other without end",
                )
            if sends:
                self._need(sends)
            for send in sends:
                inherited = target.queue if send.queue is None else send.queue
                todo.append((self._target(send.stream), send.command, inherited))
        return messages.Receipt(submission.stream, first, last)

    def _decide(
        self, head: _Head, command: object, cause: str, queue: str
    ) -> tuple[messages.Send, ...]:
        machine = head.registered.machine
        head.registered.codec.commands.check(command)
        machine.addressed(head.name, command)
        decision = machine.decide(head.state, command, self._identity.now)
        if not decision:
            return ()
        if not decision.events:
            raise errors.Rejected(
                f"machine {machine.name} acts without an event: {type(command).__name__}",
                hint="every effect, send and timer needs an event that says why",
            )
        self._save(head)
        if head.version == 0:
            # Born by this command: one before it that changed nothing gave it no queue.
            head.queue = queue
        self._evolve(head, decision.events, cause)
        # Most decisions have none of some, and this is done for each transition.
        if decision.withdraws:
            self._withdraw(head, decision.withdraws)
        if decision.effects:
            self._ask(head, decision.effects)
        if decision.timers:
            self._set_timers(head, decision.timers)
        return decision.sends

    def _evolve(self, head: _Head, events: Sequence[object], cause: str) -> None:
        encode = head.registered.codec.events.encode
        evolve = head.registered.machine.evolve
        for event in events:
            head.version += 1
            head.state = evolve(head.state, event)
            row = encode(event)
            self.size += len(row.data)
            self.writes.events.append(
                protocol.NewEvent(head.id, head.version, row.type, row.version, row.data, cause)
            )
        head.touched = True

    def _ask(self, head: _Head, effects: Sequence[object]) -> None:
        in_order = head.registered.machine.effects_in_order
        for n, effect in enumerate(effects):
            row = head.registered.codec.effects.encode(effect)
            self.size += len(row.data)
            room = self._room.get((head.queue, type(effect)))
            # In an ordered lane only the first may start; the rest wait to be claimed. What
            # this worker does not perform is left for those who do, and so is what it has no
            # place for: of many effects, half of the room is left for other streams.
            fits = room is not None and n <= room and room > 0
            owner = self._identity.fence if fits and not (in_order and head.pending) else None
            head.pending += 1
            self.writes.effects.append(
                protocol.NewEffect(
                    head.id, head.version, n, row.type, row.version, row.data, in_order, owner
                )
            )
            if owner is not None and room is not None:
                self._room[head.queue, type(effect)] = room - 1
                hold = messages.Hold(head.id, head.version, n, owner)
                epoch = self._identity.epoch
                self.fresh.append(PendingEffect(hold, head.name, effect, 0, head.queue, epoch))
            elif room is not None:
                self.left = True

    def _withdraw(self, head: _Head, withdraws: Sequence[messages.Withdraw]) -> None:
        for each in withdraws:
            encoder = head.registered.codec.effects
            if isinstance(each.effect, type):
                name, data = encoder.check_type(each.effect).name, None
            else:
                row = encoder.encode(each.effect)
                name, data = row.type, row.data
            self.writes.withdrawn.append(protocol.Withdrawal(head.id, head.version, name, data))

    def _set_timers(
        self, head: _Head, timers: Sequence[messages.SetTimer | messages.CancelTimer]
    ) -> None:
        if self._marks.timers is None:
            self._marks.timers = dict(self._timers)
        for timer in timers:
            messages.check_timer_name(timer.name)
            # One batch may set and cancel the same timer several times: the last word counts.
            if isinstance(timer, messages.CancelTimer):
                self._timers[head.id, timer.name] = None
                continue
            row = head.registered.codec.commands.encode(timer.command)
            due = clock.to_millis_due(timer.due)
            self._timers[head.id, timer.name] = protocol.NewTimer(
                head.id, timer.name, head.version, due, row.type, row.version, row.data
            )

    def _settle(self, key: messages.Hold | messages.TimerKey, head: _Head) -> None:
        self._claim(key)
        if isinstance(key, messages.Hold):
            self._save(head)
            head.pending = max(0, head.pending - 1)
            self.writes.settled.append(key)
        else:
            self.writes.fired.append(key)

    def _claim(self, key: messages.Hold | messages.TimerKey) -> None:
        if key in self._settled or (self._held is not None and key not in self._held):
            raise Stale
        self._settled.add(key)

    def _remember(
        self,
        submission: messages.Submission,
        head: _Head,
        digest: str,
        receipt: messages.Receipt,
    ) -> None:
        row = protocol.CommandRow(submission.id, digest, receipt.first, receipt.last)
        self._commands[submission.id] = row
        # A stream that was not born has no number yet: what it was given may go to another.
        stream = head.id if head.version else protocol.NO_STREAM
        self.writes.commands.append(
            protocol.NewCommand(submission.id, stream, digest, receipt.first, receipt.last)
        )

    def _head(self, stream: messages.StreamName) -> _Head:
        head = self._heads.get(stream)
        if head is None:
            raise self._broken.get(stream) or Unloaded([stream])
        return head

    def _target(self, stream: messages.StreamName) -> _Head:
        try:
            return self._head(stream)
        except errors.Newer as error:
            raise Beyond(f"sent to a stream that is newer: {stream}", hint=error.hint) from error

    def _need(self, sends: Sequence[messages.Send]) -> None:
        """All that a decision sends to at once, or a hundred children cost a hundred trips."""
        heads, broken = self._heads, self._broken
        streams = dict.fromkeys(send.stream for send in sends)
        missing = [name for name in streams if name not in heads and name not in broken]
        if missing:
            raise Unloaded([messages.parse_stream(name) for name in missing])

    def _old(self, row: protocol.StreamRow) -> _Head:
        registered = self._registry.of(row.name)
        encoded = codec.Encoded(row.state_type, row.state_version, row.state)
        state = registered.codec.states.decode(encoded)
        return _Head(
            messages.StreamName(row.name), registered, row.id, row.version, row.version,
            state, bool(row.ended), row.pending, row.queue, before=state,
        )  # fmt: skip

    def _new(self, name: messages.StreamName, number: int) -> _Head:
        registered = self._registry.of(name)
        return _Head(
            name, registered, number, 0, 0, registered.machine.initial, ended=False, pending=0
        )

    def _write_head(self, head: _Head) -> None:
        registered = head.registered
        row = registered.codec.states.encode(head.state)
        ended = registered.machine.ended(head.state)
        ended_at = self.writes.now if ended else None
        if ended and not head.ended:
            self.writes.ended.append(head.id)
        if registered.machine.attributes is not None:
            self.writes.attributes += attributes.changes(
                registered.machine, head.id, head.before, head.state
            )
        if head.seen == 0:
            self.writes.streams.append(
                protocol.NewStream(
                    head.id,
                    head.name,
                    registered.machine.name,
                    head.version,
                    row.type,
                    row.version,
                    row.data,
                    ended_at,
                    head.queue,
                )
            )
        else:
            self.writes.states.append(
                protocol.NewState(
                    head.id, head.seen, head.version, row.type, row.version, row.data, ended_at
                )
            )

    def _save(self, head: _Head) -> None:
        if head.name not in self._marks.heads:
            self._marks.heads[head.name] = head.copy()

    def _lengths(self) -> tuple[int, ...]:
        writes = self.writes
        return (
            len(writes.events), len(writes.commands), len(writes.effects), len(writes.settled),
            len(writes.fired), len(writes.withdrawn), len(self.fresh),
        )  # fmt: skip

    def _undo(self) -> None:
        writes, marks = self.writes, self._marks
        lists: tuple[list[Any], ...] = (
            writes.events, writes.commands, writes.effects, writes.settled, writes.fired,
            writes.withdrawn, self.fresh,
        )  # fmt: skip
        for each, length in zip(lists, marks.lengths, strict=True):
            del each[length:]
        self._heads.update(marks.heads)
        if marks.timers is not None:
            self._timers = marks.timers
        self._settled = {*writes.settled, *writes.fired}


def digest_of(registered: RegisteredMachine, submission: messages.Submission) -> str:
    """What a command says, so that the same id with other words is noticed.

    Not what its row would hold: that also has what the type of today adds by its defaults, and
    a command that is sent again after an upgrade would be another one. So fields that equal
    their defaults count as not said, here as in whoever sent it; the order of fields and the
    way a number is written do not count either.
    """
    commands = registered.codec.commands
    row = commands.encode(submission.command)
    text = f"{submission.stream}\n{row.type}\n".encode() + commands.essence(submission.command)
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def _answer_again(
    submission: messages.Submission, known: protocol.CommandRow, digest: str
) -> messages.Receipt:
    if known.digest != digest:
        raise errors.Conflict(
            f"command id was used for another command: {submission.id}",
            hint="send a new command under a new id",
        )
    return messages.Receipt(submission.stream, known.first, known.last, duplicate=True)
