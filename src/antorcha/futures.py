"""``torch.futures``: values that are to come, set by one thread and waited for by others."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, cast

from antorcha.core.device import as_device
from antorcha.errors import AntorchaError, ArgumentError

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class FutureError(AntorchaError, RuntimeError):
    """A future is asked for a value too early, or set twice."""


class Future(Generic[T]):
    """A value that a thread sets, once, and for which others wait.

    devices: those of the tensors that it may hold, as PyTorch asks for them; streams need nothing
    here. See https://docs.pytorch.org/docs/stable/futures.html.

    >>> future = torch.futures.Future()
    >>> doubled = future.then(lambda done: 2 * done.value())
    >>> future.set_result(torch.ones(2))
    >>> doubled.wait()
    tensor([2., 2.])
    """

    def __init__(self, *, devices: Sequence[Any] | None = None) -> None:
        for each in devices or ():
            as_device(each)
        self._set: concurrent.futures.Future[T] = concurrent.futures.Future()

    def done(self) -> bool:
        """Has it a value, or an exception?"""
        return self._set.done()

    def wait(self) -> T:
        """The value, as soon as it is there; raises the exception if that was set."""
        return self._set.result()

    def value(self) -> T:
        """The value, which must be there; raises the exception if that was set."""
        if not self.done():
            raise FutureError("Future.value: the future is not done yet; call wait() for its value")
        return self._set.result()

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """A future of what `callback` makes of this one when it is done (at once, if it is)."""
        result: Future[S] = Future()

        def run(_: Any) -> None:
            try:
                found = callback(self)
            except Exception as error:
                result.set_exception(error)
            else:
                result.set_result(found)

        self._set.add_done_callback(run)
        return result

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Calls `callback` with this future when it is done (at once, if it is)."""
        self._set.add_done_callback(lambda _: callback(self))

    def set_result(self, result: T) -> None:
        """Sets the value; whoever waits goes on, and the callbacks run."""
        self._set_once("set_result", self._set.set_result, result)

    def set_exception(self, result: BaseException) -> None:
        """Sets an exception, which those who wait get raised."""
        if not isinstance(result, BaseException):
            raise ArgumentError(
                f"Future.set_exception: {result!r} is of type {type(result).__name__}, which is "
                "not an Exception."
            )
        self._set_once("set_exception", self._set.set_exception, result)

    def _set_once(self, method: str, put: Callable[[Any], None], result: Any) -> None:
        try:
            put(result)
        except concurrent.futures.InvalidStateError:
            raise FutureError(
                f"Future.{method}: the future has been set already; make a new one"
            ) from None


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future of the list of these, done when all of them are; or when one has an exception, which
    it then has, too.

    >>> first, second = torch.futures.Future(), torch.futures.Future()
    >>> both = torch.futures.collect_all([first, second])
    >>> first.set_result(1)
    >>> second.set_result(2)
    >>> [each.value() for each in both.wait()]
    [1, 2]
    """
    result: Future[list[Future[Any]]] = Future()
    lock, left = threading.Lock(), [len(futures)]

    def one_more(done: Future[Any]) -> None:
        error = done._set.exception()
        with lock:
            left[0] -= 1
            if result.done():
                return
            if error is not None:
                result.set_exception(error)
            elif left[0] == 0:
                result.set_result(futures)

    for each in futures:
        each.add_done_callback(one_more)
    if not futures:
        result.set_result([])
    return result


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """The values of these futures, when all are there; raises the first exception.

    >>> future = torch.futures.Future()
    >>> future.set_result(3)
    >>> torch.futures.wait_all([future])
    [3]
    """
    return [cast(Any, each.wait()) for each in futures]
