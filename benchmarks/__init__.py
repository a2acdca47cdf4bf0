"""Measurements of speed and loss, each a module that can be run by itself."""
