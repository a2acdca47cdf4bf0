"""Replacing faces in frames: somebody else's features in the person's own pose, light and movement."""
