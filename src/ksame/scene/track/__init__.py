"""Observations become tracks, and tracks people."""

from ksame.scene.track.config import TrackerConfig
from ksame.scene.track.driver import find_tracks
from ksame.scene.track.join import People, by_name, join_files
from ksame.scene.track.storage import load_tracks, save_tracks
from ksame.scene.track.tracks import Person, Track, Tracks
from ksame.scene.track.tracks_file import read_tracks, write_tracks

__all__ = [
    "People",
    "Person",
    "Track",
    "TrackerConfig",
    "Tracks",
    "by_name",
    "find_tracks",
    "join_files",
    "load_tracks",
    "read_tracks",
    "save_tracks",
    "write_tracks",
]
