"""Parallel execution: run tasks in worker processes and return their results.

The workers are fresh interpreters that exchange pickles over pipes. Unlike forked ones they are safe whatever threads
the caller has started, and unlike spawned ones they do not rerun the caller's script.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, TypeVar

Task = Callable[[], Any]
Run = Callable[[Sequence[Task], Callable[[int], None]], list[Any]]
Stream = Callable[[Sequence[Task]], Iterator[tuple[int, Any]]]


def available_cores() -> int:
    """Number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine_words() -> str:
    """Cores and memory, for the top of a page of timings: how fast a machine is without naming it."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{available_cores()} cores, {memory:.0f} GiB of memory"


@contextmanager
def pool(workers: int) -> Iterator[Run]:
    """A function that runs tasks (picklable, called without arguments) and returns their results in the same order.

    It reports how many are done. With one worker, tasks run in this process. An error in a task is raised here.
    """

    def run(tasks: Sequence[Task], done: Callable[[int], None]) -> list[Any]:
        results: dict[int, Any] = {}
        for place, result in each(tasks):
            results[place] = result
            done(len(results))
        return [results[place] for place in range(len(tasks))]

    with stream(workers) as each:
        yield run


@contextmanager
def stream(workers: int) -> Iterator[Stream]:
    """Like `pool`, but yields the index and result of each task as it is done."""
    if workers <= 1:
        yield _run_here
        return
    processes = [_start() for _ in range(workers)]
    idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
    for process in processes:
        idle.put(process)

    def ask(task: Task) -> Any:
        process = idle.get()
        try:
            return _ask(process, task)
        finally:
            idle.put(process)

    def each(tasks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
        places = {threads.submit(ask, task): place for place, task in enumerate(tasks)}
        for finished in as_completed(places):
            yield places[finished], finished.result()

    threads = ThreadPoolExecutor(workers)
    try:
        yield each
    finally:
        # an interrupted caller must not wait for results that nobody will read
        for process in processes:
            process.kill()
        threads.shutdown(wait=True, cancel_futures=True)
        for process in processes:
            process.communicate()


Given = TypeVar("Given")
Found = TypeVar("Found")


def threaded(function: Callable[[Given], Found], items: Iterable[Given]) -> Iterator[Found]:
    """Results for all items in their order, computed in as many threads as there are cores.

    For work that releases the interpreter's lock, such as compiled loops and sorting. With one core or one item, it
    runs in this thread.

    >>> list(threaded(abs, [-2, 1]))
    [2, 1]
    """
    waiting = list(items)
    workers = min(available_cores(), len(waiting))
    if workers <= 1:
        yield from map(function, waiting)
        return
    threads = ThreadPoolExecutor(workers)
    try:
        yield from threads.map(function, waiting)
    finally:
        # after an error, what has not begun is left out
        threads.shutdown(wait=True, cancel_futures=True)


def _run_here(tasks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
    return ((place, task()) for place, task in enumerate(tasks))


def _start() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", "from shoal.workers import serve; serve()"]
    # one thread each: the workers provide the parallelism
    quiet = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    environment = {**os.environ, **quiet, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def _ask(process: subprocess.Popen[bytes], task: Task) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        pickle.dump(task, process.stdin)
        process.stdin.flush()
        succeeded, value = pickle.load(process.stdout)
    except (BrokenPipeError, EOFError):
        raise RuntimeError("a worker process ended early, perhaps for lack of memory.") from None
    if not succeeded:
        raise value
    return value


def serve() -> None:
    """Main loop of a worker: tasks from standard input, results to standard output, until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupted caller ends its workers itself
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output printed by a task must not mix with the results
    while True:
        try:
            task = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = (True, task())
        except Exception as error:
            answer = (False, error)
        try:
            pickle.dump(answer, results)
            results.flush()
        except BrokenPipeError:  # the caller has gone
            os._exit(1)
