"""Every recipe by name: a method, the coding it works in, and defaults. The one registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from ksame.errors import UsageError, parameter_error
from ksame.faces.faceset import FaceSet
from ksame.heads.portrait import PortraitSpace
from ksame.methods import (
    AdHoc,
    BarMask,
    Blur,
    EigenReduce,
    EpsilonKMap,
    EpsilonMap,
    FlipNoise,
    Furthest,
    KSame,
    Method,
    Noise,
    OneFace,
    Pixelate,
    Select,
    Threshold,
    TMask,
    WrongMap,
)
from ksame.parameters import Parameters
from ksame.spaces import AamSpace, EigenSpace, FaceModelSpace, FaceSpace, PixelSpace


@dataclass(frozen=True)
class Recipe(Parameters):
    """A method in a coding, ready to run.

    Attributes
    ----------
    name : str
    method : Method
    space : FaceSpace
        The coding in which faces are replaced.
    distance_space : FaceSpace, optional
        Another coding in which neighbours are sought.
    select : str, optional
        The label that is kept.
    fitted_ : bool, optional
        Whether the codings were learned already, see :meth:`fit`.
    """

    name: str
    method: Method
    space: FaceSpace
    distance_space: FaceSpace | None = None
    select: str | None = None
    fitted_: bool | None = None

    def fit(self, faces: FaceSet) -> Recipe:
        """Return the recipe with codings learned on ``faces``, for people who come later.

        Without it, :func:`ksame.deidentify` learns them on the faces it is given. Newcomers are grouped among
        themselves, in groups of at least k: who was learned on takes no part in any face.
        """
        return replace(replace(self, fitted_=None).fitted(faces), fitted_=True)

    def fitted(self, faces: FaceSet) -> Recipe:
        """Return the recipe as it was fitted, or fitted on these faces."""
        if self.fitted_:
            return self
        distance = None if self.distance_space is None else self.distance_space.fit(faces)
        return replace(self, space=self.space.fit(faces), distance_space=distance)

    def params(self) -> dict[str, Any]:
        """Return the public parameters, from which :func:`recipe` builds the same recipe again."""
        params = self.method.params()
        if self.distance_space is not None:
            params["distance"] = self.distance_space.name
            params["components"] = self.distance_space.params()["n_components"]
        return params


@dataclass(frozen=True)
class Entry:
    """A line of the registry: how to build a recipe, and what to tell people about it."""

    name: str
    summary: str
    promise: str
    bound: str
    needs: str
    paper: str
    build: Callable[..., Method]
    accepts: tuple[str, ...]
    coding: str = "pixel"
    codings: tuple[str, ...] = ("pixel", "eigen", "aam", "model")
    defaults: Mapping[str, Any] = field(default_factory=dict)


_REGISTRY: dict[str, Entry] = {}

REGISTRY: Mapping[str, Entry] = MappingProxyType(_REGISTRY)
"""All recipes by name."""


def register(entry: Entry) -> None:
    """Add a recipe; a name that is taken is refused."""
    if entry.name in _REGISTRY:
        raise UsageError(f"A recipe called {entry.name!r} exists already.")
    _REGISTRY[entry.name] = entry


def recipe(
    name: str,
    *,
    coding: str | None = None,
    components: int | float | None = None,
    distance: str | None = None,
    select: str | None = None,
    small_classes: str = "error",
    **params: Any,
) -> Recipe:
    """Build a recipe by name.

    Parameters
    ----------
    name : str
        See ``REGISTRY`` or ``ksame methods``.
    coding : {"pixel", "eigen", "aam", "model", "portrait"}, optional
        The face space: registered pixels, their eigenfaces, an Active Appearance Model built on the set itself, the
        face model that comes with the package, or the same shown as whole heads. Each recipe has its own default.
    components : int or float, optional
        Number of components, or share of variance, of the eigen coding.
    distance : {"eigen"}, optional
        Seek neighbours among eigenface coefficients although faces are replaced in another coding.
    select : str, optional
        Label to keep (k-Same-Select).
    small_classes : {"error", "merge", "drop"}
        What to do with classes of too few people.
    **params
        Parameters of the method, such as ``k``.

    Examples
    --------
    >>> recipe("k-same-pixel", k=3).params()
    {'k': 3, 'grouping': 'greedy'}
    """
    if name not in _REGISTRY:
        raise UsageError(f"There is no recipe {name!r}. Choose one of: {', '.join(_REGISTRY)}.")
    entry = _REGISTRY[name]
    given = {key: value for key, value in params.items() if value is not None}
    unknown = sorted(set(given) - set(entry.accepts))
    if unknown:
        accepted = ", ".join(entry.accepts) or "no parameters"
        raise UsageError(f"{name} takes no {', '.join(repr(u) for u in unknown)}. It takes: {accepted}.")
    method = entry.build(**{**entry.defaults, **given})
    if select is None and small_classes != "error":
        raise UsageError("Small classes come of a label that is kept; add --select, or leave --small-classes out.")
    if select is not None:
        method = Select(method, select, small_classes)  # type: ignore[arg-type]  # checked by Select itself
    chosen = coding or entry.coding
    if chosen not in entry.codings:
        raise parameter_error("coding", name, f"one of {', '.join(entry.codings)}", chosen)
    if components is not None and chosen != "eigen" and distance != "eigen":
        raise UsageError(
            "The number of components belongs to the eigen coding; add --coding eigen or --distance eigen."
        )
    if distance not in (None, "eigen"):
        raise parameter_error("distance", name, "'eigen'", distance)
    eigen = EigenSpace(0.95 if components is None else components)
    spaces: dict[str, FaceSpace] = {
        "pixel": PixelSpace(),
        "eigen": eigen,
        "aam": AamSpace(zero_first_texture=entry.name.endswith("-furthest")),
        "model": FaceModelSpace(),
        "portrait": PortraitSpace(),
    }
    return Recipe(name, method, spaces[chosen], eigen if distance == "eigen" and chosen != "eigen" else None, select)


_LEVELLED: Mapping[str, type[AdHoc]] = {"pixelate": Pixelate, "blur": Blur, "noise": Noise}


def _epsilon_map(over: str = "pixelate", **params: Any) -> EpsilonMap:
    if over not in _LEVELLED:
        raise parameter_error("over", "epsilon-map", f"one of {', '.join(_LEVELLED)}", over)
    return EpsilonMap(over=_LEVELLED[over](), **params)


def _k_same_furthest(**params: Any) -> Furthest:
    return Furthest(release="centroid", **params)


def _k_diff_furthest(**params: Any) -> Furthest:
    return Furthest(release="shifted", **params)


def _average() -> OneFace:
    return OneFace("mean")


def _blackout(value: float = 0.0) -> OneFace:
    return OneFace("plain", value)


_NEWTON = "Newton 2005"
_GROSS = "Gross 2005"
_TOWARDS = "Gross 2007"
_SUN = "Sun 2015"
_NONE = ("nothing", "none")
_PIXELS = ("pixel",)

for _entry in (
    Entry(
        "k-same-pixel",
        "k people share the pixel mean of their faces",
        "k-anonymity",
        "1/k, any recogniser",
        "k people",
        _NEWTON,
        KSame,
        ("k", "grouping"),
        codings=_PIXELS,
    ),
    Entry(
        "k-same-eigen",
        "k people share the mean of their eigenface projections",
        "k-anonymity",
        "1/k, any recogniser",
        "k people",
        _NEWTON,
        KSame,
        ("k", "grouping"),
        coding="eigen",
        codings=("eigen",),
    ),
    Entry(
        "k-same-m",
        "k people share the mean of their model parameters, or somebody who does not exist",
        "k-anonymity",
        "1/k, any recogniser",
        "k people; photographs",
        "Gross 2006",
        KSame,
        ("k", "grouping", "surrogate"),
        coding="model",
        codings=("model", "aam", "portrait"),
    ),
    Entry(
        "k-same-furthest",
        "clusters get each other's mean",
        "k-anonymity of the smallest cluster",
        "1/smallest cluster, any recogniser",
        "2k people",
        _SUN,
        _k_same_furthest,
        ("k", "condition", "repair"),
        coding="eigen",
    ),
    Entry(
        "k-diff-furthest",
        "clusters change places, all faces stay different",
        "zero recognition in its own distance",
        "0 at rank 1, own distance only; falls to difference vectors",
        "2k people, one image each",
        _SUN,
        _k_diff_furthest,
        ("k", "condition", "repair"),
        coding="eigen",
    ),
    Entry(
        "epsilon-k-map",
        "each face equally like k people",
        "(epsilon,k)-map",
        "about 1/k, naive matching in its own coding",
        "k people in the reference",
        _TOWARDS,
        EpsilonKMap,
        ("k", "lam", "models", "epsilon", "sigma"),
    ),
    Entry(
        "epsilon-map",
        "each face distorted until it is like no one",
        "epsilon-map",
        "none; likelihood below epsilon",
        "a reference",
        _TOWARDS,
        _epsilon_map,
        ("over", "epsilon", "sigma"),
        codings=_PIXELS,
    ),
    Entry(
        "wrong-map",
        "each face moved until somebody else is nearer",
        "wrong-map",
        "0 at rank 1, own distance only; true person at rank 2",
        "2 people",
        _TOWARDS,
        WrongMap,
        ("margin",),
    ),
    Entry(
        "average",
        "everyone gets the mean of all",
        "k-anonymity, k = all people",
        "1/n, any recogniser",
        "2 people",
        _NEWTON,
        _average,
        (),
        codings=_PIXELS,
    ),
    Entry(
        "blackout",
        "everyone gets one plain face",
        "k-anonymity, k = all people",
        "1/n, any recogniser",
        "2 people",
        _NEWTON,
        _blackout,
        ("value",),
        codings=_PIXELS,
    ),
    Entry("bar-mask", "bar over the eyes", *_NONE, "landmarks", _NEWTON, BarMask, ("value",), codings=_PIXELS),
    Entry("t-mask", "bar over eyes and nose", *_NONE, "landmarks", _NEWTON, TMask, ("value",), codings=_PIXELS),
    Entry("pixelate", "blocks of p x p pixels", *_NONE, "-", _NEWTON, Pixelate, ("p",), codings=_PIXELS),
    Entry("blur", "Gaussian blur", *_NONE, "-", _GROSS, Blur, ("sigma",), codings=_PIXELS),
    Entry("threshold", "black and white", *_NONE, "-", _NEWTON, Threshold, ("t",), codings=_PIXELS),
    Entry("noise", "m random pixels", *_NONE, "-", _NEWTON, Noise, ("m",), codings=_PIXELS),
    Entry(
        "noise-bw",
        "black and white, m pixels flipped",
        *_NONE,
        "-",
        _NEWTON,
        FlipNoise,
        ("m", "t"),
        codings=_PIXELS,
    ),
    Entry(
        "eigen-reduce",
        "first e eigenfaces only",
        *_NONE,
        "e + 1 people",
        "Phillips 2005",
        EigenReduce,
        ("e",),
        codings=_PIXELS,
    ),
):
    register(_entry)
