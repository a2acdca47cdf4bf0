"""Every method by name: what it does to face sets and to photographs and video. The one registry."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ksame import methods
from ksame.errors import UsageError, parameter_error
from ksame.faces.faceset import FaceSet
from ksame.heads.portrait import PortraitSpace
from ksame.methods.entry import METHODS, Entry, InScenes, for_scenes
from ksame.parameters import Parameters
from ksame.spaces import AamSpace, EigenSpace, FaceModelSpace, FaceSpace, PixelSpace

__all__ = ["METHODS", "Entry", "InScenes", "Recipe", "for_scenes", "recipe"]


@dataclass(frozen=True)
class Recipe(Parameters):
    """A method in a coding, ready to run."""

    name: str
    method: methods.Method
    space: FaceSpace  # the coding in which faces are replaced
    distance_space: FaceSpace | None = None  # another coding in which neighbours are sought
    select: str | None = None  # the label that is kept
    fitted_: bool | None = None  # whether the codings were learned already, see :meth:`fit`

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
    """Build a recipe for face sets by name.

    Parameters
    ----------
    name : str
        See ``METHODS`` or ``ksame methods``.
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
    entry = METHODS.choose(name, lambda entry: entry.for_sets)
    method: methods.Method = entry.build(**{key: value for key, value in params.items() if value is not None})
    if select is None and small_classes != "error":
        raise UsageError("Small classes come of a label that is kept; add --select, or leave --small-classes out.")
    if select is not None:
        method = methods.Select(method, select, small_classes)  # type: ignore[arg-type]  # checked there
    chosen = coding or entry.codings[0]
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
        "aam": AamSpace(**entry.aam),
        "model": FaceModelSpace(),
        "portrait": PortraitSpace(),
    }
    return Recipe(name, method, spaces[chosen], eigen if distance == "eigen" and chosen != "eigen" else None, select)


_K, _ANY = "k-anonymity", "any recogniser"
_NEWTON, _GROSS, _TOWARDS, _SUN = "Newton 2005", "Gross 2005", "Gross 2007", "Sun 2015"
_NONE = ("nothing", "none")
_MEAN, _MASK, _MESHED = {"surrogate": "mean"}, InScenes(), InScenes(needs_mesh=True)
_MODELS = ("aam", "model")

for _entry in (
    Entry(
        "someone-else",
        "k people share the face of somebody who does not exist",
        "a shared surrogate identity",
        "none; the certificate counts the real people who share it",
        "photographs or video",
        "-",
        methods.KSame,
        {"grouping": "greedy", "surrogate": "someone-else"},
        codings=(),
        scenes=InScenes(shares="a face of somebody who does not exist", judged=True),
    ),
    Entry(
        "k-same-pixel",
        "k people share the pixel mean of their faces",
        *(_K, f"1/k, {_ANY}", "k people", _NEWTON),
        methods.KSame,
        _MEAN,
    ),
    Entry(
        "k-same-eigen",
        "k people share the mean of their eigenface projections",
        *(_K, f"1/k, {_ANY}", "k people", _NEWTON),
        methods.KSame,
        _MEAN,
        codings=("eigen",),
        equals="k-same-pixel",
    ),
    Entry(
        "k-same-m",
        "k people share the mean of their model parameters, or somebody who does not exist",
        *(_K, f"1/k, {_ANY}", "k people; photographs", "Gross 2006"),
        methods.KSame,
        codings=("model", "aam", "portrait"),
        scenes=InScenes(shares="the mean of the group's faces", fixed={"grouping": "mdav+refine"}),
    ),
    Entry(
        "k-same-furthest",
        "clusters get each other's mean",
        *("k-anonymity of the smallest cluster", f"1/smallest cluster, {_ANY}", "2k people", _SUN),
        methods.Furthest,
        {"release": "centroid"},
        codings=("eigen", "pixel", *_MODELS),
        aam={"zero_first_texture": True},
    ),
    Entry(
        "k-diff-furthest",
        "clusters change places, all faces stay different",
        "zero recognition in its own distance",
        "0 at rank 1, own distance only; falls to difference vectors",
        *("2k people, one image each", _SUN),
        methods.Furthest,
        {"release": "shifted"},
        codings=("eigen", "pixel", *_MODELS),
        aam={"zero_first_texture": True},
    ),
    Entry(
        "epsilon-k-map",
        "each face equally like k people",
        *("(epsilon,k)-map", "about 1/k, naive matching in its own coding", "k people in the reference", _TOWARDS),
        methods.EpsilonKMap,
        codings=("pixel", "eigen", *_MODELS),
    ),
    Entry(
        "epsilon-map",
        "each face distorted until it is like no one",
        *("epsilon-map", "none; likelihood below epsilon", "a reference", _TOWARDS),
        methods.EpsilonMap,
    ),
    Entry(
        "wrong-map",
        "each face moved until somebody else is nearer",
        *("wrong-map", "0 at rank 1, own distance only; true person at rank 2", "2 people", _TOWARDS),
        methods.WrongMap,
        codings=("pixel", "eigen", *_MODELS),
    ),
    Entry(
        "average",
        "everyone gets the mean of all",
        *("k-anonymity, k = all people", f"1/n, {_ANY}", "2 people", _NEWTON),
        methods.Average,
    ),
    Entry(
        "fill",
        "a smooth colour from what surrounds the face",
        *_NONE,
        *("photographs or video", "-"),
        None,
        codings=(),
        scenes=InScenes(fills=True),
    ),
    Entry(
        "blackout",
        "everyone gets one plain face",
        *("k-anonymity, k = all people", f"1/n, {_ANY}", "2 people", _NEWTON),
        methods.Blackout,
        scenes=_MASK,
    ),
    Entry("pixelate", "blocks of p x p pixels", *_NONE, "-", _NEWTON, methods.Pixelate, scenes=_MASK),
    Entry("blur", "Gaussian blur", *_NONE, "-", _GROSS, methods.Blur, scenes=_MASK),
    Entry("threshold", "black and white", *_NONE, "-", _NEWTON, methods.Threshold, scenes=_MASK),
    Entry("noise", "m random pixels", *_NONE, "-", _NEWTON, methods.Noise, scenes=_MASK),
    Entry("noise-bw", "black and white, m pixels flipped", *_NONE, "-", _NEWTON, methods.FlipNoise, scenes=_MASK),
    Entry("bar-mask", "bar over the eyes", *_NONE, "landmarks", _NEWTON, methods.BarMask, scenes=_MESHED),
    Entry("t-mask", "bar over eyes and nose", *_NONE, "landmarks", _NEWTON, methods.TMask, scenes=_MESHED),
    Entry("eigen-reduce", "first e eigenfaces only", *_NONE, "e + 1 people", "Phillips 2005", methods.EigenReduce),
):
    METHODS.add(_entry)
