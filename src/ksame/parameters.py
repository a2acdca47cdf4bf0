"""Parameters, described once: from here come checks, command line, help, certificates and JSON Schema.

They are read and changed in the way of scikit-learn.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeVar

from ksame.errors import UsageError, parameter_error, real_number, whole_number

Self = TypeVar("Self", bound="Parameters")

_JSON = {int: "integer", float: "number", bool: "boolean", str: "string"}


@dataclass(frozen=True)
class Spec:
    """What is known of one parameter."""

    name: str
    help: str
    kind: type  # int, float, bool or str
    default: Any  # with None it may be left open
    # limits of a number, which fractions need; ``above`` and ``below`` leave the limits themselves out
    low: float | None = None
    high: float | None = None
    above: bool = False
    below: bool = False
    choices: tuple[str, ...] = ()  # all values of a word; empty where any will do
    level: bool = False  # whether ``--level`` sets it: how strong a mask is
    grows: Literal["", "height", "area"] = ""  # {"", "height", "area"}: with what of a face in a photograph it grows
    weakest: float = 0.0  # smallest value to which it shrinks with a small face
    method: bool = False  # whether the value is a method, given by its name
    public: bool = True  # whether it is a choice of its own; False where the name of a recipe says it
    quiet: bool = False  # whether certificates leave it out at its default
    option: str = ""  # what the command line calls it, where that is not its name

    def checked(self, value: Any, owner: str) -> Any:
        """Return a value as a plain Python one, or raise the one wording for a bad parameter."""
        if self.method or (value is None and self.default is None):
            return value
        if self.choices and value not in self.choices:
            raise parameter_error(self.name, owner, f"one of {', '.join(self.choices)}", value)
        if self.kind is int:
            high = None if self.high is None else int(self.high)
            return whole_number(self.name, owner, value, int(self.low or 0), high)
        if self.kind is float:
            return real_number(
                self.name, owner, value, self.low or 0.0, self.high or 0.0, above=self.above, below=self.below
            )
        return bool(value) if self.kind is bool else value

    def read(self, level: float) -> float:
        """Return a number from the command line as this parameter takes it: 8.0 as 8 where it is whole."""
        return int(level) if self.kind is int and float(level).is_integer() else level

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of its values."""
        schema: dict[str, Any] = {"type": _JSON[self.kind], "description": self.help}
        if self.default is None:
            schema["type"] = [_JSON[self.kind], "null"]
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.low is not None:
            schema["exclusiveMinimum" if self.above else "minimum"] = self.low
        if self.high is not None:
            schema["exclusiveMaximum" if self.below else "maximum"] = self.high
        return schema


def parameter(default: Any, help: str, **rules: Any) -> Any:
    """Return a dataclass field for a parameter; ``rules`` are those of :class:`Spec`."""
    kind = rules.pop("kind", type(default))
    return field(default=default, metadata={"spec": Spec("", help, kind, default, **rules)})


def specs(owner: Any) -> dict[str, Spec]:
    """Return what is known of the parameters of a dataclass, by name."""
    return {f.name: replace(f.metadata["spec"], name=f.name) for f in fields(owner) if "spec" in f.metadata}


class Parameters:
    """A frozen dataclass whose fields are parameters, but for those that end in ``_``, which were learned.

    ``sklearn.base.clone`` works on it. Nothing is changed in place: :meth:`set_params` returns a changed copy.
    """

    def __post_init__(self) -> None:
        for spec in specs(type(self)).values():
            owner = getattr(self, "name", type(self).__name__)
            object.__setattr__(self, spec.name, spec.checked(getattr(self, spec.name), owner))

    def params(self) -> dict[str, Any]:
        """Return the public parameters, ready for JSON."""
        values = {}
        for spec in specs(type(self)).values():
            value = getattr(self, spec.name)
            if spec.public and not (spec.quiet and value == spec.default):
                values[spec.name] = value.name if spec.method else value
        return values

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; with ``deep`` also those of parameters, as ``method__k``."""
        values = {name: getattr(self, name) for name in self._names()}
        if deep:
            for name, value in list(values.items()):
                if isinstance(value, Parameters):
                    values.update({f"{name}__{key}": inner for key, inner in value.get_params().items()})
        return values

    def set_params(self: Self, **params: Any) -> Self:
        """Return the same with some parameters changed, and with nothing learned."""
        names = self._names()
        own: dict[str, Any] = {name: getattr(self, name) for name in names}
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if name not in names or (inner and not isinstance(own[name], Parameters)):
                raise UsageError(f"{type(self).__name__} has no parameter {key!r}. It has: {', '.join(names)}.")
            own[name] = own[name].set_params(**{inner: value}) if inner else value
        return replace(self, **own, **dict.fromkeys(self._learned()))  # type: ignore[type-var]

    def _names(self) -> list[str]:
        return [f.name for f in fields(self) if not f.name.endswith("_")]  # type: ignore[arg-type]

    def _learned(self) -> list[str]:
        return [f.name for f in fields(self) if f.name.endswith("_")]  # type: ignore[arg-type]
