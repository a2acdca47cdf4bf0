"""Reading and changing parameters, in the way of scikit-learn."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

from ksame.errors import UsageError

Self = TypeVar("Self", bound="Parameters")


class Parameters:
    """A frozen dataclass whose fields are parameters, but for those that end in ``_``, which were learned.

    ``sklearn.base.clone`` works on it. Nothing is changed in place: :meth:`set_params` returns a changed copy.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; with ``deep`` also those of parameters, as ``method__k``."""
        found = {name: getattr(self, name) for name in self._names()}
        if deep:
            for name, value in list(found.items()):
                if isinstance(value, Parameters):
                    found.update({f"{name}__{key}": inner for key, inner in value.get_params().items()})
        return found

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
