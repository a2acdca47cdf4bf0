"""The papers behind this package: their experiments run again, their figures drawn again, their claims judged."""

from ksame.papers.claims import Claim, Judged, Verdict
from ksame.papers.data import Data, FolderData, SyntheticData, Wanted
from ksame.papers.experiment import FAST, FULL, TINY, Experiment, Findings, Scale
from ksame.papers.paper import Paper
from ksame.papers.report import write_reproduction
from ksame.papers.run import PAPERS, load_paper, run_experiments

__all__ = [
    "FAST",
    "FULL",
    "PAPERS",
    "TINY",
    "Claim",
    "Data",
    "Experiment",
    "Findings",
    "FolderData",
    "Judged",
    "Paper",
    "Scale",
    "SyntheticData",
    "Verdict",
    "Wanted",
    "load_paper",
    "run_experiments",
    "write_reproduction",
]
