"""Photographs and video: everyone in them found, followed and replaced."""
