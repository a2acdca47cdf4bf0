"""Publish pictures of people without publishing who they are, and prove it.

>>> import ksame
>>> faces = ksame.synthetic(12, size=(67, 50))
>>> release, linkage = ksame.deidentify(faces, ksame.recipe("k-same-pixel", k=4))
>>> release.certificate.promise.bound
0.25
"""

__version__ = "0.1.0"

from ksame.deidentify import deidentify
from ksame.faces import FaceSet, Template, load_folder, register
from ksame.photographs import load_photographs
from ksame.privacy import Certificate, Linkage, Release, read_release, write_release
from ksame.recipes import REGISTRY, Recipe, recipe
from ksame.synthetic import synthetic

__all__ = [
    "REGISTRY",
    "Certificate",
    "FaceSet",
    "Linkage",
    "Recipe",
    "Release",
    "Template",
    "deidentify",
    "load_folder",
    "load_photographs",
    "read_release",
    "recipe",
    "register",
    "synthetic",
    "write_release",
]
