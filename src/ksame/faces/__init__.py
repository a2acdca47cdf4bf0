"""What a face set is, how it is read and how it is registered."""

from ksame.faces.faceset import FaceSet
from ksame.faces.folder import Loaded, load_folder
from ksame.faces.registration import Template, register

__all__ = ["FaceSet", "Loaded", "Template", "load_folder", "register"]
