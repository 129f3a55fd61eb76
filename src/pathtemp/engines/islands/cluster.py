"""Islands on the workers of a Dask cluster."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, replace
from typing import Any, ClassVar, Literal
from uuid import uuid4

from pathtemp.api.arguments import shown
from pathtemp.engines.islands.board import Board
from pathtemp.engines.islands.island import Done, Task, carry_out
from pathtemp.errors import InputError, MissingExtraError, SamplingError
from pathtemp.io.travel import packed, unpacked
from pathtemp.kernels.compilation import use_compilation_cache
from pathtemp.model.model import Model
from pathtemp.result.run import RoundRecord

_one_at_a_time = threading.Lock()


class OnCluster:
    """Does the steps of islands on workers.

    Parameters
    ----------
    client
        A ``dask.distributed.Client``.
    model
        What is sampled.
    board
        Who is told.
    """

    aside: ClassVar[bool] = True

    def __init__(self, client: Any, model: Model, board: Board) -> None:
        self._client, self._model, self._board = client, packed(model), board
        self._topic = f"pathtemp-{uuid4().hex}"

    def do(self, tasks: Sequence[Task]) -> list[Done]:
        """Do one step of each island; one whose worker is lost is done again by another."""
        with self._told():
            done: list[Done] = on_workers(self._client, _step, [(self._model, task, self._topic) for task in tasks])
        return done

    def heard(self) -> AbstractContextManager[None]:
        """Nothing: Ctrl-C ends the run at once, and what is under way on the workers with it."""
        return nullcontext()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Let the board hear of the rounds while steps are under way."""
        if self._client.status == "running":
            self._client.subscribe_topic(self._topic, self._hear)
        try:
            yield
        finally:
            if self._client.status == "running":
                self._client.unsubscribe_topic(self._topic)

    def _hear(self, event: tuple[float, dict[str, Any]]) -> None:
        told = event[1]
        part = self._board.of(told["island"])
        if told["kind"] == "compile":
            part.compile(told["name"])
        elif told["kind"] == "anneal":
            part.anneal(told["lam"], told["gradients"])
        else:
            part.round(RoundRecord(**told["record"]))


def on_workers(client: Any, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
    """What ``function`` gives for each of the arguments, on the workers of a client.

    Ctrl-C, and an error of one, end the others. A scheduler that goes away is a :class:`SamplingError`.
    """
    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    if client.status != "running":
        raise InputError(f"client: it is {client.status}; give one that is connected to a scheduler")
    where = client.scheduler.address
    try:
        futures = [client.submit(function, *given, pure=False) for given in arguments]
        try:
            return list(client.gather(futures))
        finally:
            if client.status == "running":
                client.cancel(futures)
    except KilledWorker as error:
        raise SamplingError(
            "client: the workers of one island died one after the other, which memory that ends would do; give them "
            "more of it, or smaller islands (fewer chains)"
        ) from error
    except (concurrent.futures.CancelledError, asyncio.CancelledError, CommClosedError, TimeoutError, OSError) as error:
        raise SamplingError(
            f"client: the scheduler at {where} went away while runs were under way, and what they had done is lost; "
            "start the cluster again, and the run with the same seed"
        ) from error


def check_workers(client: Any, cluster: Any, cores: int | None = None) -> None:
    """Raise where a client, or a cluster, is none that islands can run on; ``cores`` are of this machine alone."""
    if client is None and cluster is None:
        return
    if client is not None and cores is not None:
        raise InputError("cores: the workers of client= have cores of their own; leave it out")
    if client is not None and cluster is not None:
        raise InputError("cluster: give client= or cluster=, not both")
    if cluster is not None and not (isinstance(cluster, str) and cluster == "local"):
        raise InputError(f'cluster: it must be "local", and is {shown(cluster)}; for any other cluster give client=')
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError("dask.distributed", "dask") from None
    if client is not None and (not isinstance(client, Client) or client.asynchronous):
        raise InputError(
            f"client: it must be a dask.distributed.Client that is not asynchronous, and is a {type(client).__name__}"
        )


@contextmanager
def client_of(client: Any, cluster: Literal["local"] | None, workers: int | None = None) -> Iterator[Any]:
    """The client to use: the user's, or one of a cluster of this machine's cores that ends with the run; None for none.

    Parameters
    ----------
    client
        A ``dask.distributed.Client``, or None.
    cluster
        "local", or None.
    workers
        Of that cluster; one for each core where None.
    """
    check_workers(client, cluster)
    if cluster is None:
        yield client
        return
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as own, Client(own) as ours:
        yield ours


def taking_turns() -> AbstractContextManager[Any]:
    """Let one thread of a worker run at a time: each uses all cores that XLA is given."""
    return _one_at_a_time


def _step(model: bytes, task: Task, topic: str) -> Done:
    """One step of an island, on a worker."""
    with taking_turns():
        use_compilation_cache()
        return carry_out(unpacked(model), task, _Relay(topic, task.island))


class _Relay:
    """Tells whoever listens to a topic of the scheduler."""

    def __init__(self, topic: str, island: int) -> None:
        from distributed import get_worker

        self._worker, self._topic, self._island = get_worker(), topic, island

    def _tell(self, kind: str, **what: Any) -> None:
        self._worker.log_event(self._topic, {"island": self._island, "kind": kind, **what})

    def start(self, budget: int) -> None:
        """Nothing: the bar is that of all islands."""

    def compile(self, name: str) -> None:
        """Say what is being compiled."""
        self._tell("compile", name=name)

    def anneal(self, lam: float, gradients: int) -> None:
        """Say how far an annealing pass has come."""
        self._tell("anneal", lam=float(lam), gradients=int(gradients))

    def round(self, record: RoundRecord) -> None:
        """Tell of a round; its curve stays where it is."""
        self._tell("round", record=asdict(replace(record, curve=None)))

    def finish(self) -> None:
        """Nothing: other islands go on."""
