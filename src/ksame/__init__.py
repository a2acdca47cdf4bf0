"""Publish pictures of people without publishing who they are, and prove it.

>>> import ksame
>>> faces = ksame.synthetic(12, size=(67, 50))
>>> release, linkage = ksame.deidentify(faces, ksame.recipe("k-same-pixel", k=4))
>>> release.certificate.promise.bound
0.25
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ksame.version import __version__

if TYPE_CHECKING:
    from ksame.audit import audit
    from ksame.deidentify import Provenance, deidentify
    from ksame.faces import FaceSet, Template, load_folder, register
    from ksame.photographs import load_photographs
    from ksame.privacy import Certificate, Linkage, Release, read_release, write_release
    from ksame.recipes import METHODS, Recipe, recipe
    from ksame.scene.config import JobConfig
    from ksame.scene.own_frames import deidentify_frames
    from ksame.scene.release import MediaRelease, ReleaseOptions, deidentify_media
    from ksame.synthetic import synthetic
    from ksame.verification import verify

__all__ = [
    "METHODS",
    "Certificate",
    "FaceSet",
    "JobConfig",
    "Linkage",
    "MediaRelease",
    "Provenance",
    "Recipe",
    "Release",
    "ReleaseOptions",
    "Template",
    "__version__",
    "audit",
    "deidentify",
    "deidentify_frames",
    "deidentify_media",
    "load_folder",
    "load_photographs",
    "read_release",
    "recipe",
    "register",
    "synthetic",
    "verify",
    "write_release",
]

_ROOMS = {
    "deidentify": ("Provenance", "deidentify"),
    "faces": ("FaceSet", "Template", "load_folder", "register"),
    "photographs": ("load_photographs",),
    "privacy": ("Certificate", "Linkage", "Release", "read_release", "write_release"),
    "recipes": ("METHODS", "Recipe", "recipe"),
    "scene.config": ("JobConfig",),
    "scene.own_frames": ("deidentify_frames",),
    "scene.release": ("MediaRelease", "ReleaseOptions", "deidentify_media"),
    "synthetic": ("synthetic",),
    "verification": ("verify",),
}
_HOMES = {name: f"ksame.{room}" for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name, or a room, when it is first used."""
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif not name.startswith("_") and find_spec(f"ksame.{name}"):
        value = import_module(f"ksame.{name}")  # among them ksame.audit, a package that can be called
    else:
        raise AttributeError(f"module 'ksame' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return also what is not loaded yet."""
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """A package whose functions are not hidden by the modules of the same name once these are loaded."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
