"""Mutation testing, a plugin of pytest: change one thing in a function at a time, and see whether a test notices.

All tests run twice, to learn what each calls and how long it takes; one that cannot be repeated is left out. A mutant
lives in a fork of that process, in which the code of its function is exchanged and the tests that call it run, the
fastest first. What survives is listed. The first of 16 parts of ``privacy``; for ``methods`` change the folder:

    tests="src/ksame/privacy src/ksame/methods tests/privacy tests/methods tests/test_guard.py tests/test_series.py
        tests/test_theorem.py tests/test_earlier_releases.py tests/app/test_release_command.py
        tests/app/test_verify_command.py tests/app/test_verify_forged.py tests/scene/test_scene_verification.py"
    PYTHONPATH=src:. OPENBLAS_NUM_THREADS=1 python -m pytest -q -m "not slow and not shared" -p tools.mutate \
        --mutate src/ksame/privacy --part 1/16 --basetemp /tmp/mutants-1 $tests
"""

from __future__ import annotations

import ast
import gc
import os
import random
import resource
import signal
import sys
import time
import warnings
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from _pytest.warnings import catch_warnings_for_item

PAIRS = ("Lt LtE", "Gt GtE", "Eq NotEq", "Is IsNot", "In NotIn", "And Or", "Add Sub", "Mult Div", "BitAnd BitOr")
SWAPS = {getattr(ast, a): getattr(ast, b) for pair in PAIRS for a, b in (pair.split(), pair.split()[::-1])}
LEFT_OUT = (ast.Raise, ast.Break, ast.Continue, ast.AugAssign)


def changed(node: Any) -> ast.AST | None:
    if type(node) in SWAPS:
        return SWAPS[type(node)]()
    if isinstance(node, ast.Constant) and isinstance(old := node.value, (int, float, str)):
        return ast.Constant(not old if isinstance(old, bool) else f"X{old}" if isinstance(old, str) else old + 1)
    if isinstance(node, (ast.If, ast.IfExp)):
        return type(node)(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    if isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
        return ast.Return(ast.Constant(None))
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return ast.Expr(node.value.func)  # named but not called
    if isinstance(node, LEFT_OUT):
        return ast.Pass()
    return node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)) else None


class Mutator(ast.NodeTransformer):
    """Lists what can be changed in functions, with the name and first line of each function, and changes the n-th."""

    def __init__(self, n: int = -1) -> None:
        self.n, self.function, self.line = n, (), 0
        self.listed: list[tuple[Any, str]] = []

    def visit(self, node: Any) -> Any:
        self.line, outer = getattr(node, "lineno", self.line), self.function
        if isinstance(node, ast.arguments) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            return node  # part of the definition, a docstring
        if outer and (new := changed(node)) is not None:
            words = ast.unparse(node).partition("\n")[0][:100] or type(node).__name__
            self.listed.append((outer, f"{self.line}: {words} -> {type(new).__name__}"))
            if len(self.listed) == self.n + 1:
                return new
        if isinstance(node, ast.AnnAssign):
            node.value = node.value and self.visit(node.value)
        elif isinstance(node, ast.FunctionDef):
            self.function = outer or (node.name, min([node.lineno, *(d.lineno for d in node.decorator_list)]))
            node.body = [self.visit(statement) for statement in node.body]
            self.function = outer
        else:
            self.generic_visit(node)
        return node


def place(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_name, code.co_firstlineno


def passes(item: pytest.Item) -> bool:
    with catch_warnings_for_item(item.config, item.ihook, "runtest", item):
        return all(report.passed for report in runtestprotocol(item, log=False, nextitem=item.session))


def survives(path: str, n: int, function: FunctionType, tests: list[tuple[float, pytest.Item, set]]) -> bool:
    if child := os.fork():
        return os.waitpid(child, 0)[1] in (0, signal.SIGALRM)  # one that waits for ever tells nothing
    limit = 20 + 4 * int(sum(seconds for seconds, *_ in tests))  # one that computes for ever is killed
    signal.alarm(10 * limit)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    killed = False  # one that cannot be made tells nothing either
    try:
        tree = ast.fix_missing_locations(Mutator(n).visit(ast.parse(Path(path).read_text())))
        codes = [compile(tree, path, "exec", dont_inherit=True)]
        for code in codes:
            codes += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
        function.__code__ = next(code for code in codes if place(code) == place(function.__code__))
        killed = True
        killed = not all(passes(item) for _, item, _ in tests)
    finally:
        os._exit(killed)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mutate", action="append", type=Path, help="a folder of code")
    parser.addoption("--sample", type=int, default=10**6, help="how many mutants are tried, drawn from all")
    parser.addoption("--part", default="1/1", metavar="I/N", help="try every N-th of them, beginning with the I-th")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    options, tests, mutants, alive = session.config.option, [], [], 0
    part, parts = map(int, options.part.split("/"))
    warnings.simplefilter("ignore")  # of forks beside threads; tests have filters of their own
    tell = session.config.pluginmanager.get_plugin("terminalreporter").write_line
    for item in session.items:
        called = set()
        sys.setprofile(lambda frame, *_, called=called: called.add(place(frame.f_code)))
        first = passes(item)
        sys.setprofile(None)
        start = time.process_time()
        if first and passes(item):
            tests.append((time.process_time() - start, item, called))
        else:
            tell(f"left out: {item.nodeid}")
    tests.sort(key=lambda test: test[0])
    functions = {place(f.__code__): f for f in gc.get_objects() if isinstance(f, FunctionType)}
    for path in [str(file.resolve()) for folder in options.mutate for file in sorted(folder.rglob("*.py"))]:
        (mutator := Mutator()).visit(ast.parse(Path(path).read_text()))
        mutants += [(path, n, *what) for n, what in enumerate(mutator.listed)]
    chosen = random.Random(1).sample(mutants, min(options.sample, len(mutants)))  # noqa: S311
    chosen = sorted(chosen)[part - 1 :: parts]
    for path, n, where, words in chosen:
        calling = [test for test in tests if (path, *where) in test[2]][:40]
        if not calling or survives(path, n, functions[(path, *where)], calling):
            tell(f"{path}:{words}{'' if calling else ' (no test)'}")
            alive += 1
    tell(f"{len(chosen) - alive} of {len(chosen)} mutants killed; there are {len(mutants)}")
    return True
