"""Events of AWS that EventBridge puts into a queue of SQS."""

from dataclasses import dataclass
from typing import Any

from fairlead.clients.aws.session import translated

_WAIT_SECONDS = 5
_MOST = 10


@dataclass(frozen=True, slots=True)
class Received:
    """One message, and what it is deleted by."""

    id: str
    body: str
    receipt: str


class EventQueue:
    """A queue; what is not deleted comes again."""

    def __init__(self, client: Any, url: str) -> None:
        self._client = client
        self._url = url

    def receive(self) -> list[Received]:
        """Waits for some seconds where there is none."""
        with translated():
            answer = self._client.receive_message(
                QueueUrl=self._url, MaxNumberOfMessages=_MOST, WaitTimeSeconds=_WAIT_SECONDS
            )
        told = answer.get("Messages", [])
        return [Received(it["MessageId"], it.get("Body", ""), it["ReceiptHandle"]) for it in told]

    def delete(self, received: Received) -> None:
        with translated():
            self._client.delete_message(QueueUrl=self._url, ReceiptHandle=received.receipt)
