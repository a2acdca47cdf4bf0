"""Heads: where one is in a frame, the drawing of a surrogate in its place, and the photograph made of it."""

from ksame.heads.covers import COVERS, FACE, HEAD, Cover

__all__ = ["COVERS", "FACE", "HEAD", "Cover"]
