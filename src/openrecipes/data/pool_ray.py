"""The same blocks on a Ray cluster."""

from __future__ import annotations

from typing import Any

from openrecipes.data.blocks import BlockJob, BlockMaker, Described
from openrecipes.data.pool import one_thread_each
from openrecipes.errors import MissingToolError, RunError


class RayWorkers:
    """One actor for each CPU of the cluster, which must see source, tokenizer and output under the same paths."""

    def __init__(self, job: BlockJob) -> None:
        try:
            import ray
        except ImportError:
            raise MissingToolError(
                "package `ray` is not installed; install it with `pip install openrecipes[ray]`"
            ) from None
        self._ray: Any = ray  # its types know neither actors' methods nor `exceptions`
        self._started = not ray.is_initialized()
        if self._started:
            ray.init(log_to_driver=False, configure_logging=False)  # RAY_ADDRESS names a cluster that is there
        actor: Any = ray.remote(num_cpus=1)(_RayMaker)
        count = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._actors = [actor.remote(job) for _ in range(count)]
        self.ahead = 2 * count

    def submit(self, number: int) -> Any:
        """Begin a block on the actor whose turn it is."""
        return self._actors[number % len(self._actors)].make.remote(number)

    def describe(self) -> Described:
        """What the first actor's encoder is."""
        return self._result(self._actors[0].describe.remote())

    def wait(self, ticket: Any) -> None:
        """Return when the block's file is there."""
        self._result(ticket)

    def _result(self, ticket: Any) -> Any:
        try:
            return self._ray.get(ticket)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause or RunError(f"a block failed on Ray: {error}") from error
        except self._ray.exceptions.RayError as error:
            reason = str(error).splitlines()[0]
            raise RunError(
                f"a Ray worker died: {reason}; the same command goes on after the finished blocks"
            ) from error

    def close(self) -> None:
        """End the actors, and Ray where it was started here."""
        for actor in self._actors:
            self._ray.kill(actor)
        if self._started:
            self._ray.shutdown()


class _RayMaker:
    def __init__(self, job: BlockJob) -> None:
        one_thread_each()
        try:
            self._maker: BlockMaker | Exception = BlockMaker(job)
        except Exception as error:  # raised here, Ray would only say that the actor died
            self._maker = error

    def describe(self) -> Described:
        return self._loaded().describe()

    def make(self, number: int) -> None:
        self._loaded().make(number)

    def _loaded(self) -> BlockMaker:
        if isinstance(self._maker, Exception):
            raise self._maker
        return self._maker
