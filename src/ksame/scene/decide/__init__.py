"""Decide what becomes of everyone: people and a configuration in, a plan out.

``decide(views, people, config, seed) -> Plan``. For each person it collects up to six views (pieces of frames of
shape (height, width, 3), meshes of shape (478, 3), embeddings of shape (d,)), deals people out to groups of k, and
judges the face of every group on the published picture of every member. No thread is started here: pictures are judged
by the executor that is handed in. A plan is stored by :func:`save_plan`.
"""

from ksame.scene.decide.arrivals import Arrivals
from ksame.scene.decide.judge import Judge
from ksame.scene.decide.plan import Decision, JudgeRecord, Plan, Treatment, treatments
from ksame.scene.decide.stage import JUDGE, SOMEONE_ELSE, check_method, decide, make_plan
from ksame.scene.decide.storage import load_plan, save_plan
from ksame.scene.decide.subject import Piece, Subject, View
from ksame.scene.decide.surrogates import Block, Group, MapBlocks, choose_in_block, choose_surrogates
from ksame.scene.decide.views import FileViews, collect_views, neutral_of, subjects_of

__all__ = [
    "JUDGE",
    "SOMEONE_ELSE",
    "Arrivals",
    "Block",
    "Decision",
    "FileViews",
    "Group",
    "Judge",
    "JudgeRecord",
    "MapBlocks",
    "Piece",
    "Plan",
    "Subject",
    "Treatment",
    "View",
    "check_method",
    "choose_in_block",
    "choose_surrogates",
    "collect_views",
    "decide",
    "load_plan",
    "make_plan",
    "neutral_of",
    "save_plan",
    "subjects_of",
    "treatments",
]
