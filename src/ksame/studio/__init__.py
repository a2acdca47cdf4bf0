"""Review and release in the browser: a local server, a page, and jobs that are commands of ``ksame``."""
