"""Sealing what is hidden: films of regions per person, in a vault from which one person can be brought back."""

from ksame.scene.sealing.sealer import Originals, Piece, Sealer, pieces_in

__all__ = ["Originals", "Piece", "Sealer", "pieces_in"]
