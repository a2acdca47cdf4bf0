"""The command line and the studio: they parse, call and print."""
