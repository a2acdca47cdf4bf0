"""The arrows between the rooms: every room imports only what stands above it."""

import ast
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

SOURCE = Path(__file__).parent.parent / "src" / "ksame"

ORDER = (
    "data",
    "arrays",
    "version",
    "errors",
    "scratch",
    "progress",
    "scheduling",
    "parameters",
    "registry",
    "files",
    "remote",
    "quiet",
    "pictures",
    "geometry",
    "faces",
    "models",
    "spaces",
    "heads",
    "synthetic",
    "photographs",
    "privacy",
    "vault",
    "methods",
    "recipes",
    "draft",
    "deidentify",
    "attacks",
    "utility",
    "scene",
    "live",
    "verification",
    "audit",
    "papers",
    "scale",
    "bench",
    "app",
    "studio",
    "__main__",
)
"""Top to bottom: a room may import itself and what comes before it."""

NEVER = {
    "attacks": {"methods", "recipes", "draft", "deidentify", "verification"},
    "utility": {"methods", "recipes", "draft", "deidentify", "verification"},
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
    return rooms


MODULES = sorted(p for p in SOURCE.rglob("*.py") if p != SOURCE / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_arrows_point_up_only(path):
    room = room_of(path)
    assert room in ORDER, f"{room} is a new room: give it a place in ORDER"
    allowed = set(ORDER[: ORDER.index(room) + 1]) - NEVER.get(room, set())
    assert imported_rooms(path) <= allowed


@pytest.mark.parametrize("room", ["heads", "scene/observe", "scene/track", "scene/decide", "scene/render"])
def test_nothing_but_a_job_starts_threads(room):
    """Stages are handed an executor, so that all files share one, and results depend on no thread."""
    for path in sorted((SOURCE / room).rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        for word in ("ThreadPoolExecutor", "ProcessPoolExecutor", "Thread(", "import threading"):
            assert word not in source, f"{path} has {word}"


STAGES = ("media", "observe", "track", "decide", "render")
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
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 350


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_functions_take_at_most_eight_parameters(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            assert len([each for each in given if each.arg not in ("self", "cls")]) <= 8, f"{path}: {node.name}"


def test_the_walk_in_contributing_names_what_is_there():
    text = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    hops = re.findall(r"^[ │├└─]*(\d+)  ?(ksame[\w.]*):(\w+)", text, re.M)
    assert [int(number) for number, _, _ in hops] == list(range(1, len(hops) + 1))
    assert 8 <= len(hops) <= 12
    for _, module, name in hops:
        assert hasattr(import_module(module), name), f"{module}:{name}"


def modules(root: Path) -> dict[str, Path]:
    """Return all modules of a package by their full names; a package is its ``__init__``."""
    found = {}
    for path in root.rglob("*.py"):
        parts = (root.name, *path.relative_to(root).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def is_for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imported_modules(tree: ast.AST, known: set[str]) -> set[str]:
    """Return the modules that a module imports anywhere, in functions too, but not for types only."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if is_for_types_only(node):
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & known
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names & known
            found |= {node.module} if names - known else set()
        found |= imported_modules(node, known)
    return found


def cycles(root: Path) -> list[list[str]]:
    """Return groups of modules that import one another."""
    known = modules(root)
    names = sorted(known)
    arrows = {
        name: imported_modules(ast.parse(path.read_text(encoding="utf-8")), set(known)) - {name}
        for name, path in known.items()
    }
    graph = np.array([[other in arrows[name] for other in names] for name in names])
    _, group = connected_components(csr_array(graph), connection="strong")
    rings = [[name for name, of in zip(names, group, strict=True) if of == number] for number in set(group.tolist())]
    return sorted(ring for ring in rings if len(ring) > 1)


def test_no_modules_import_one_another():
    assert cycles(SOURCE) == []


def test_the_check_sees_a_cycle(tmp_path):
    package = tmp_path / "house"
    package.mkdir()
    (package / "__init__.py").write_text("from house.door import knock\n")
    (package / "door.py").write_text("def knock():\n    from house.bell import ring\n")
    (package / "bell.py").write_text("from house import knock\n")
    assert cycles(package) == [["house", "house.bell", "house.door"]]
    (package / "bell.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house import knock\n"
    )
    assert cycles(package) == []
