"""The papers behind this package: their experiments run again, their figures drawn again, their claims judged."""
