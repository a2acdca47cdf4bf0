"""The registry of methods: what a name stands for, and what it can do, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ksame.errors import UsageError, parameter_error
from ksame.parameters import Spec, specs
from ksame.registry import Registry


@dataclass(frozen=True)
class InScenes:
    """What a method does to faces in photographs and video."""

    works: bool = True  # whether it means anything there
    shares: str = ""  # what the people of a group share, in the words of the certificate; empty for masks
    judged: bool = False  # whether the recogniser in the loop says who gets which face; otherwise the method does
    fills: bool = False  # whether a mask is made of what surrounds the face, without a look at it
    needs_mesh: bool = False  # whether a mask can only be put on a face whose eyes are known
    fixed: Mapping[str, Any] = field(default_factory=dict)  # parameters that scenes choose


@dataclass(frozen=True)
class Entry:
    """What a name stands for, and what to tell people about it."""

    name: str
    summary: str
    promise: str
    bound: str
    needs: str
    paper: str
    method: Callable[..., Any] | None  # a dataclass of parameters; None for the plain fill, which has none
    fixed: Mapping[str, Any] = field(default_factory=dict)  # parameters that the name stands for
    codings: tuple[str, ...] = ("pixel",)  # in which it works on face sets, the default first; none where it does not
    aam: Mapping[str, Any] = field(default_factory=dict)  # how the Active Appearance Model codes for it
    equals: str = ""  # the method that it is where its coding keeps all of a face
    scenes: InScenes = InScenes(works=False)  # what it does to photographs and video

    def __post_init__(self) -> None:
        if self.masks and not self.scenes.fills and not hasattr(self.method, "apply"):
            raise UsageError(f"{self.name} cannot mask faces in scenes: its method has no apply().")

    @property
    def for_sets(self) -> bool:
        """Whether it works on face sets."""
        return bool(self.codings)

    @property
    def masks(self) -> bool:
        """Whether it covers faces in photographs and video; otherwise it gives others."""
        return self.scenes.works and not self.scenes.shares

    @property
    def parameters(self) -> dict[str, Spec]:
        """What can be chosen, by name."""
        known = {} if self.method is None else specs(self.method)
        return {name: spec for name, spec in known.items() if name not in self.fixed}

    @property
    def level(self) -> Spec | None:
        """The parameter that ``--level`` sets."""
        return next((spec for spec in self.parameters.values() if spec.level), None)

    def build(self, **params: Any) -> Any:
        """Return the method with some parameters chosen."""
        unknown = sorted(set(params) - set(self.parameters))
        if unknown:
            accepted = ", ".join(self.parameters) or "no parameters"
            raise UsageError(f"{self.name} takes no {', '.join(map(repr, unknown))}. It takes: {accepted}.")
        named = {name: _stepped(self.name, name, params[name]) for name in params if self.parameters[name].method}
        return None if self.method is None else self.method(**{**params, **named, **self.fixed})

    def at(self, level: float | None) -> dict[str, float]:
        """Return the parameter that a level sets; none without a level."""
        if level is None:
            return {}
        if self.level is None:
            raise UsageError(f"{self.name} has no level. Leave --level out.")
        return {self.level.name: self.level.read(level)}

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of its parameters, as certificates have them."""
        public = {name: spec.schema() for name, spec in self.parameters.items() if spec.public}
        return {"type": "object", "properties": public}


METHODS: Registry[Entry] = Registry("method")
"""All methods by name. :mod:`ksame.recipes` fills it: take it from there."""


def _stepped(owner: str, name: str, value: Any) -> Any:
    """Return the method with levels that a parameter names."""
    able = [entry for entry in METHODS.values() if hasattr(entry.method, "levels")]
    chosen = [entry for entry in able if entry.name == value]
    if not chosen:
        raise parameter_error(name, owner, f"one of {', '.join(entry.name for entry in able)}", value)
    return chosen[0].build()


def for_scenes(name: str) -> Entry:
    """Return a method for photographs and video."""
    return METHODS.choose(name, lambda entry: entry.scenes.works)
