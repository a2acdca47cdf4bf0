"""What live work is told."""

from __future__ import annotations

from dataclasses import dataclass, field

from ksame.errors import UsageError
from ksame.parameters import Parameters, parameter
from ksame.recipes import METHODS
from ksame.scene.config import JobConfig
from ksame.scene.decide import SOMEONE_ELSE


@dataclass(frozen=True)
class LiveConfig(Parameters):
    """How a live picture is de-identified; times in seconds.

    Numbers without a measurement beside them are by choice.
    """

    latency: float = parameter(0.3, "age at which a frame is no longer shown", low=0.02, high=10.0)
    # of the latency; what is left is for masks, encoding and a processor that others use as well
    mesh_share: float = parameter(0.5, "share of the latency after which no more faces are meshed", low=0.0, high=1.0)
    # a picture that takes all of the processor leaves nothing for heads and people
    fps: float = parameter(15.0, "frames per second that are shown, at most", low=0.1, high=1000.0)
    max_side: int = parameter(1280, "longest side in pixels; larger frames are reduced", low=64, high=8192)
    # a mask outlives the face it was for until the detector has looked as often, and for as long, and found nobody
    hold: float = parameter(0.7, "seconds for which a face that is no longer seen stays masked", low=0.0, high=60.0)
    hold_looks: int = parameter(4, "searched frames for which it stays masked, at least", low=1, high=1000)
    growth: float = parameter(0.6, "by how much such a mask grows in a second, in its own size", low=0.0, high=10.0)
    max_growth: float = parameter(1.6, "how many times larger it may become", low=1.0, high=100.0)
    thorough: float = parameter(1.0, "seconds between searches for small and turned faces; 0: never", low=0, high=3600)
    views: int = parameter(4, "views of a person by which their surrogate is chosen", low=1, high=12)
    between_views: float = parameter(0.12, "seconds between two such views", low=0.0, high=10.0)
    recheck: float = parameter(3.0, "seconds after which the judge looks at a person again", low=0.1, high=3600.0)
    retry: float = parameter(2.0, "seconds before another try with a person whom the judge knew", low=0.0, high=3600.0)
    # heads: lengths in sides of the square; what is carried further, or for longer, was seen to look smeared
    near: float = parameter(0.012, "how far points may be for a new head to be carried, not made", low=0.0, high=1.0)
    fresh: float = parameter(0.25, "seconds for which it is", low=0.0, high=60.0)
    carry: float = parameter(0.06, "how far points may be carried where a new head is not in time", low=0.0, high=1.0)
    head_age: float = parameter(0.6, "seconds for which they may", low=0.0, high=60.0)
    head_share: float = parameter(0.75, "share of the latency after which no head is waited for", low=0.0, high=1.0)
    head_size: int = parameter(256, "side in pixels at which heads are finished, at most", low=128, high=512)
    # 128 pixels, where the machine cannot do more for everyone within
    head_time: float = parameter(0.15, "seconds that heads of one frame may take", low=0.0, high=60.0)
    remembered: int = parameter(500, "people who are remembered after they left", low=0, high=100_000)
    segment: float = parameter(10.0, "seconds in a file segment", low=0.1, high=86_400.0)
    job: JobConfig = field(default_factory=JobConfig)  # method, k, cover and the tracker

    def __post_init__(self) -> None:
        super().__post_init__()
        entry = METHODS[self.job.method]
        if not entry.masks and entry.name != SOMEONE_ELSE:
            raise UsageError(
                f"{entry.name} groups people whom it knows all beforehand; live they come one by one. "
                f"Choose {SOMEONE_ELSE}, or a mask: see ksame methods."
            )
