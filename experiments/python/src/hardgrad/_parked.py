"""A call into core that waits while a `with` block runs."""
from __future__ import annotations

from queue import SimpleQueue
from threading import Thread
from typing import Any, Callable, Optional

from ._core import UsageError


class Dropped(Exception):
    """An exception has left the block."""


class Parked:
    """Core calls a network as a function, but a `with` block is not one. So core is called in a separate thread, which waits while the
    block runs and makes choices on its behalf. The two never run at the same time.

    call: core's part, a function of the network; it returns the estimate.
    once: the error message if core runs the network again.
    """

    def __init__(self, call: Callable[[Callable[[Any], None]], Any], once: str):
        self._questions: SimpleQueue[Optional[Callable[[Any], Any]]] = SimpleQueue()
        self._answers: SimpleQueue[tuple[Any, Optional[BaseException]]] = SimpleQueue()
        self._once, self._begun, self._dropped = once, False, False
        self._thread = Thread(target=self._work, args=(call,), daemon=True)
        self._thread.start()
        self._answer()

    def choose(self, *given: Any) -> Any:
        return self._ask(lambda asking: asking.choose(*given))

    def cost(self, *given: Any) -> None:
        self._ask(lambda asking: asking.cost(*given))

    def end(self) -> Any:
        """Ends the block, and returns core's result."""
        found = self._ask(None)
        self._thread.join()
        return found

    def drop(self) -> None:
        """Ends the block without a result."""
        self._dropped = True
        self._questions.put(None)
        self._thread.join()

    def _ask(self, question: Optional[Callable[[Any], Any]]) -> Any:
        if not self._thread.is_alive():
            raise UsageError("this episode has ended")
        self._questions.put(question)
        return self._answer()

    def _answer(self) -> Any:
        found, error = self._answers.get()
        if error is not None:
            raise error
        return found

    def _work(self, call: Callable[[Callable[[Any], None]], Any]) -> None:
        self._reply(lambda: call(self._network))

    def _network(self, asking: Any) -> None:
        if self._begun:
            raise UsageError(self._once)
        self._begun = True
        self._answers.put((None, None))
        while (question := self._questions.get()) is not None:
            self._reply(question, asking)
        if self._dropped:
            raise Dropped

    def _reply(self, of: Callable[..., Any], *given: Any) -> None:
        try:
            self._answers.put((of(*given), None))
        except BaseException as error:
            self._answers.put((None, error))
