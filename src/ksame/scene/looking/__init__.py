"""Pass 1, look: everyone in a photograph or a recording found, followed and told apart."""

from ksame.scene.looking.options import Frame, Looking
from ksame.scene.looking.storage import load_cast, save_cast
from ksame.scene.looking.tracks_json import read_tracks, write_tracks
from ksame.scene.looking.watching import look

__all__ = ["Frame", "Looking", "load_cast", "look", "read_tracks", "save_cast", "write_tracks"]
