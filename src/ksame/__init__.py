"""Publish pictures of people without publishing who they are, and prove it.

>>> import ksame
>>> faces = ksame.drawn_faces(12, seed=3)
>>> release, linkage = ksame.deidentify(faces, ksame.recipe("k-same-pixel", k=4))
>>> release.certificate.promise.bound
0.25
"""

__version__ = "0.1.0"

from ksame.deidentify import deidentify
from ksame.faces import FaceSet, Template, drawn_faces, load_folder, register
from ksame.privacy import Certificate, Linkage, Release, read_release, write_release
from ksame.recipes import REGISTRY, Recipe, recipe

__all__ = [
    "REGISTRY",
    "Certificate",
    "FaceSet",
    "Linkage",
    "Recipe",
    "Release",
    "Template",
    "deidentify",
    "drawn_faces",
    "load_folder",
    "read_release",
    "recipe",
    "register",
    "write_release",
]
