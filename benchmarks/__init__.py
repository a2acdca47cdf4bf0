"""Research: measurements of loss, privacy and use, each a module that says what it needs; for speed: ``ksame bench``."""
