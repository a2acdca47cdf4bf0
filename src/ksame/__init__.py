"""Publish pictures of people without publishing who they are, and prove it."""

__version__ = "0.1.0"
