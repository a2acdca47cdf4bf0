"""Every option of every command is given numbers that make no sense. A new option is found by itself."""

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ksame import METHODS
from ksame.app import cli
from ksame.errors import ExitCode

VALUES = ("inf", "-inf", "nan", "1e300", "-1", "100000000000", "9" * 5000, "0x10", "\u00b2", "")
WORDS = ("nan", "-1", VALUES[6], "")
"""What options are given that take a word or a path, of which most may be one."""
MEANT = {"seed": {VALUES[5]}, "region": {"-1,0,9,9", "0,-1,9,9"}}
"""Values that some options can be given in earnest."""
PLACES = {("demo", "output"), ("studio", "folder")}
"""Where any word is right, and much is written."""
FINISHED = (ExitCode.DONE, ExitCode.WITHHELD)
FORMS = {
    "size": ("{}x40", "40x{}", "{}x{}"),
    "region": ("{},0,9,9", "0,{},9,9", "0,0,{},9", "0,0,9,{}", "{}"),
    "start": ("{}", "-0:{}"),
    "end": ("{}",),
    "faces": ("synthetic:{}", "synthetic:2x{}"),
}
"""How a number is spelt in options that take more than a number."""
BY_METHOD = {
    "release": [entry.name for entry in METHODS.values() if entry.for_sets],
    "deidentify": [entry.name for entry in METHODS.values() if entry.scenes.works],
}
BASES = {
    "release": ("{people}", "-o", "out"),
    "verify": ("{published}",),
    "deidentify": ("{nothing}", "-o", "out.png"),
    "live": ("{nothing}", "-o", "out"),
    "people": ("{nothing}",),
    "audit": ("{people}", "{nothing}", "-o", "report.html"),
    "reproduce": ("newton2005", "-o", "out", "--faces", "{nothing}"),
    "demo": ("-o", "out", "--people", "4", "-k", "2"),
    "methods": (),
    "bench": ("no-such-benchmark",),
    "studio": ("{nothing}", "--no-open"),
    "models list": (),
    "models pull": ("no-such-model",),
    "models verify": ("no-such-model",),
    "vault keygen": ("-o", "key.txt"),
    "vault list": ("{nothing}",),
    "vault open": ("{nothing}", "{nothing}", "-p", "P1", "-i", "{nothing}", "-o", "out.mp4"),
    "vault rekey": ("{nothing}", "-i", "{nothing}"),
    "vault verify": ("{nothing}",),
    "vault split": ("{nothing}", "-m", "2", "-n", "3", "-o", "out"),
    "vault join": ("{nothing}", "-o", "out.txt"),
}
"""Calls that are right but for what they are to read, so that a wrong number must be noticed before."""


def commands(named, prefix=""):
    for name, command in named.items():
        if hasattr(command, "commands"):
            yield from commands(command.commands, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


COMMANDS = dict(commands({name: cli.load(name) for name in cli.COMMANDS}))
PARAMETERS = [
    pytest.param(name, parameter, id=f"{name} {parameter.name}")
    for name, command in COMMANDS.items()
    for parameter in command.params
    if not getattr(parameter, "is_flag", False) and (name, parameter.name) not in PLACES
]
OPTIONS = [p for p in PARAMETERS if p.values[1].param_type_name == "option"]
ARGUMENTS = [p for p in PARAMETERS if p.values[1].param_type_name == "argument"]


def is_number(option):
    described = getattr(option, "type_descriptor", None)  # typer from 0.27 on; click's own types before
    if described is not None:
        return described.annotation in (int, float)
    return option.type.name.split()[0] in ("integer", "float")


def calls(name, option, places):
    """Return the calls in which an option can be used: once for each method that takes it."""
    base = [word.format(**places) for word in BASES[name]]
    for method in BY_METHOD.get(name, (None,)):
        if name == "deidentify" and option.name not in ("k", "level") and method != "pixelate":
            continue
        if name == "release" and option.name not in METHODS[method].parameters:
            takes_level = option.name == "level" and METHODS[method].level is not None
            if not takes_level and method != "k-same-pixel":
                continue
        chosen = [] if method is None or option.name == "method" else ["-m", method]
        needs_k = name == "release" and option.name != "k" and "k" in METHODS[method].parameters
        yield [*name.split(), *base, *chosen, *(("-k", "3") if needs_k else ())]


@pytest.fixture
def places(people, published, tmp_path, monkeypatch):
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return {"people": people, "published": published.folder, "nothing": tmp_path / "no-such-place"}


def test_every_command_is_called():
    assert set(BASES) == set(COMMANDS)


def spelt(name, values=VALUES):
    words = [form.format(value, value) for value in values for form in FORMS.get(name, ("{}",))]
    return [word for word in words if word not in MEANT.get(name, ())]


def outcome(words, allowed):
    """Return what is wrong with how a call ended, or None; then clear away whatever it rightly wrote."""
    result = CliRunner().invoke(cli.app, words)
    left = [p.name for p in Path.cwd().iterdir()]
    said = f"{' '.join(words)[:200]}: {result.exit_code} {result.exception!r}"
    for name in left:
        shutil.rmtree(name) if Path(name).is_dir() else Path(name).unlink()
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return said
    if words[-2] == "--manifest" and result.exit_code != ExitCode.USAGE:
        left = [name for name in left if name != words[-1]]  # it tells of jobs that failed, too
    if result.exit_code not in allowed or (left and result.exit_code not in FINISHED):
        return f"{said}, left {left}"
    return None


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_values_that_make_no_sense_are_usage_errors_and_nothing_is_written(name, option, places):
    strict = is_number(option) or (option.name in FORMS and option.name != "faces")
    allowed = {ExitCode.USAGE} if strict else set(ExitCode)
    assert not [
        trouble
        for call in calls(name, option, places)
        for word in spelt(option.name, VALUES if strict else WORDS)
        if (trouble := outcome([*call, option.opts[0], word], allowed))
    ]


@pytest.mark.parametrize(("name", "argument"), ARGUMENTS)
def test_arguments_that_make_no_sense_are_refused_and_nothing_is_written(name, argument, places):
    base = [word.format(**places) for word in BASES[name]]
    at = [p.name for p in COMMANDS[name].params if p.param_type_name == "argument"].index(argument.name)
    allowed = {ExitCode.USAGE, ExitCode.UNREADABLE, ExitCode.MODEL_MISSING}
    assert not [
        trouble
        for word in spelt(argument.name)
        if (trouble := outcome([*name.split(), *base[at + 1 :], "--", *base[:at], word], allowed))
    ]
