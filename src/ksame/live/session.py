"""A live session: a source is read, every frame is published or dropped, and what happened is counted."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
from threadpoolctl import threadpool_limits

from ksame.errors import seed_number
from ksame.live.background import Background, Inline
from ksame.live.config import LiveConfig
from ksame.live.heads import HeadStore
from ksame.live.newest import Newest
from ksame.live.people import LivePeople
from ksame.live.publisher import Publisher
from ksame.live.sinks import LiveSink
from ksame.live.sources import Grabber, LiveSource
from ksame.live.statistics import Statistics
from ksame.live.tracker import LiveTracker
from ksame.models import RECOGNISERS
from ksame.models.finisher import Finisher
from ksame.recipes import METHODS
from ksame.scene.decide import JUDGE, Arrivals, Judge
from ksame.scene.memory import one_opencv_thread
from ksame.scene.observe.mesh import FaceMesher

_TICK = 0.2  # seconds after which a session that waits for frames looks whether it should end


def run_live(
    source: LiveSource,
    sink: LiveSink,
    config: LiveConfig | None = None,
    *,
    seed: int | None = None,
    seconds: float = np.inf,
    statistics: Statistics | None = None,
    on_progress: Callable[[Statistics], None] = lambda _: None,
) -> Statistics:
    """Show a source in a sink with everyone replaced or masked, until it ends; an interruption is an end too.

    Parameters
    ----------
    source : LiveSource
        See :func:`ksame.live.open_source`.
    sink : LiveSink
        See :func:`ksame.live.open_sink`; it is left at the end.
    config : LiveConfig, optional
    seed : int, optional
        For the surrogates. A secret; drawn at random by default.
    seconds : float
        After which it ends.
    statistics : Statistics, optional
        Counted on, and returned.
    on_progress : callable
        Called after every frame that was looked at.
    """
    config, statistics = config or LiveConfig(), statistics or Statistics()
    seed = secrets.randbits(63) if seed is None else seed_number("run_live", seed)
    newest = Newest()
    with ExitStack() as stack:
        stack.enter_context(sink)
        stack.enter_context(one_opencv_thread())
        stack.enter_context(threadpool_limits(1, "blas"))
        publisher = build(config, statistics, seed, stack)
        start = time.monotonic()
        stack.enter_context(Grabber(source, newest, statistics))
        try:
            while not newest.ended and time.monotonic() - start < seconds:
                captured = newest.take(_TICK)
                if captured is not None:
                    due = time.monotonic() + 1 / config.fps
                    pixels = publisher.publish(captured)
                    if pixels is not None:
                        sink.show(pixels, captured.time)
                        statistics.show(time.monotonic() - captured.time)
                    time.sleep(max(0.0, due - time.monotonic()))
                _count(statistics, newest, publisher, time.monotonic() - start)
                on_progress(statistics)
        except KeyboardInterrupt:  # the way in which live work is ended
            pass
    _count(statistics, newest, publisher, statistics.seconds)
    statistics.k_real = None if publisher.people.arrivals is None else publisher.people.arrivals.k_real()
    return statistics


def build(config: LiveConfig, statistics: Statistics, seed: int, stack: ExitStack) -> Publisher:
    """Load the networks and start the threads beside the picture; they end with the stack."""
    mesher = FaceMesher(config.job.tracker.detector)
    recogniser = RECOGNISERS[JUDGE].build()
    heads, arrivals = None, None
    deciding, searching = Background("people", statistics), Background("search", statistics, nice=10)
    for background in (deciding, searching):
        stack.callback(background.close)
    if not METHODS[config.job.method].masks:
        network = Finisher(config.job.device)
        pool = stack.enter_context(ThreadPoolExecutor(os.cpu_count() or 1, "ksame-live-heads"))
        heads = HeadStore(config, network, pool, statistics)
        judge = Judge(recogniser, network, config.job.cover)
        arrivals = Arrivals(config.job.k, judge, np.random.default_rng(seed), Inline())
    people = LivePeople(config, mesher, recogniser, arrivals, deciding)
    publisher = Publisher(config, LiveTracker(config, mesher), people, heads, searching, statistics, seed=seed)
    mesher.detector.detect(np.zeros((480, 640, 3), dtype=np.uint8))  # loads its network before a frame is waiting
    return publisher


def _count(statistics: Statistics, newest: Newest, publisher: Publisher, seconds: float) -> None:
    statistics.captured, statistics.skipped, statistics.seconds = newest.captured, newest.skipped, seconds
    statistics.people, statistics.never_replaced = publisher.people.n_people, publisher.people.n_never_replaced
