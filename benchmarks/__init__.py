"""Research: measurements of loss, privacy and use; each module says what it needs. For speed: ``ksame bench``."""
