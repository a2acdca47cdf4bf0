"""Live pictures: one pass, a bounded delay, and nobody shown before they are covered."""

from ksame.live.config import LiveConfig
from ksame.live.session import run_live
from ksame.live.sinks import LiveSink, open_sink
from ksame.live.sources import LiveSource, open_source
from ksame.live.statistics import Statistics

__all__ = ["LiveConfig", "LiveSink", "LiveSource", "Statistics", "open_sink", "open_source", "run_live"]
