"""The arrows between the rooms: every room imports only what stands above it."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "ksame"

ORDER = (
    "data",
    "errors",
    "progress",
    "parameters",
    "registry",
    "files",
    "faces",
    "geometry",
    "models",
    "spaces",
    "heads",
    "synthetic",
    "photographs",
    "privacy",
    "methods",
    "recipes",
    "deidentify",
    "claims",
    "verification",
    "attacks",
    "utility",
    "scene",
    "audit",
    "papers",
    "scale",
    "vault",
    "app",
    "__main__",
)
"""Top to bottom: a room may import itself and what comes before it."""

NEVER = {
    "attacks": {"methods", "recipes", "deidentify", "claims", "verification"},
    "utility": {"methods", "recipes", "deidentify", "claims", "verification"},
    "methods": {"models"},
    "privacy": {"models"},
}
"""Judges do not know the accused: attacks and measures look at what was released, never at how it was made."""


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "ksame" else [node.module]
        else:
            continue
        rooms |= {name.split(".")[1] for name in names if name and name.startswith("ksame.")}
    return rooms - {"__version__"}


MODULES = sorted(p for p in SOURCE.rglob("*.py") if p != SOURCE / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_arrows_point_up_only(path):
    room = room_of(path)
    assert room in ORDER, f"{room} is a new room: give it a place in ORDER"
    allowed = set(ORDER[: ORDER.index(room) + 1]) - NEVER.get(room, set())
    assert imported_rooms(path) <= allowed


@pytest.mark.parametrize("room", ["heads", "scene/decide", "scene/render"])
def test_nothing_but_a_job_starts_threads(room):
    """Deciding and rendering are handed an executor, so that all files share one, and results depend on no thread."""
    for path in sorted((SOURCE / room).rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        for word in ("ThreadPoolExecutor", "ProcessPoolExecutor", "Thread(", "import threading"):
            assert word not in source, f"{path} has {word}"


STAGES = ("media", "decide", "render")
"""Stages of scenes: each imports only those before it, and none of them the job."""


@pytest.mark.parametrize("stage", STAGES)
def test_stages_do_not_know_those_after_them(stage):
    later = {*STAGES[STAGES.index(stage) + 1 :], "job", "release", "own_frames"}
    for path in sorted((SOURCE / "scene" / stage).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ksame.scene."):
                assert node.module.split(".")[2] not in later, f"{path} imports {node.module}"


def test_the_check_sees_a_wrong_arrow(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from ksame.methods.base import Problem\nfrom ksame import app\n")
    assert imported_rooms(wrong) == {"methods", "app"}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_modules_fit_on_a_few_screens(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 450
