"""Publish pictures of people without publishing who they are, and prove it.

>>> import ksame
>>> faces = ksame.synthetic(12, size=(67, 50))
>>> release, linkage = ksame.deidentify(faces, ksame.recipe("k-same-pixel", k=4))
>>> release.certificate.promise.bound
0.25
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ksame.deidentify import Provenance, deidentify
from ksame.faces import FaceSet, Template, load_folder, register
from ksame.photographs import load_photographs
from ksame.privacy import Certificate, Linkage, Release, read_release, write_release
from ksame.recipes import METHODS, Recipe, recipe
from ksame.synthetic import synthetic
from ksame.version import __version__

if TYPE_CHECKING:
    from ksame.audit import audit
    from ksame.scene.config import JobConfig
    from ksame.scene.own_frames import deidentify_frames
    from ksame.scene.release import MediaRelease, ReleaseOptions, deidentify_media
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


_LATER = {
    "JobConfig": "ksame.scene.config",
    "MediaRelease": "ksame.scene.release",
    "ReleaseOptions": "ksame.scene.release",
    "deidentify_frames": "ksame.scene.own_frames",
    "deidentify_media": "ksame.scene.release",
    "verify": "ksame.verification",
}


def __getattr__(name: str) -> Any:
    """Load what takes long to load when it is first used."""
    if name == "audit":  # the package itself, which can be called
        return import_module("ksame.audit")
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'ksame' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return also what is not loaded yet."""
    return sorted({*globals(), *__all__})
