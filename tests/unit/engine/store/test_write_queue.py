"""Turns to write are handed on in the order of asking, and nobody waits without end."""

import threading

import pytest

from fairlead.engine.store.write_queue import WriteQueue

PATIENCE = 60.0


def test_turns_come_in_the_order_of_asking() -> None:
    queue, order = WriteQueue(), list[int]()
    threads = [threading.Thread(target=_write, args=(queue, order, n)) for n in range(5)]

    with queue.turn(PATIENCE):
        for number, thread in enumerate(threads):
            thread.start()
            _until_waiting(queue, number + 1)
    for thread in threads:
        thread.join(PATIENCE)

    assert order == [0, 1, 2, 3, 4]


def test_whoever_asks_again_at_once_stands_behind_who_waits() -> None:
    queue, order = WriteQueue(), list[int]()
    renewal = threading.Thread(target=_write, args=(queue, order, 1))

    with queue.turn(PATIENCE):
        renewal.start()
        _until_waiting(queue, 1)
    with queue.turn(PATIENCE):
        order.append(2)
    renewal.join(PATIENCE)

    assert order == [1, 2]


def test_who_waited_in_vain_goes_on_without_a_turn_and_takes_none_from_others() -> None:
    queue = WriteQueue()

    with queue.turn(PATIENCE):
        with queue.turn(0):
            pass
        held = queue._taken

    assert held
    assert not queue._waiting
    assert _is_free(queue)


def test_a_turn_is_given_back_when_its_work_fails() -> None:
    queue = WriteQueue()

    with pytest.raises(RuntimeError), queue.turn(PATIENCE):
        raise RuntimeError

    assert _is_free(queue)


def _is_free(queue: WriteQueue) -> bool:
    return not queue._taken


def _write(queue: WriteQueue, order: list[int], number: int) -> None:
    with queue.turn(PATIENCE):
        order.append(number)


def _until_waiting(queue: WriteQueue, count: int) -> None:
    while len(queue._waiting) < count:
        threading.Event().wait(0.001)
