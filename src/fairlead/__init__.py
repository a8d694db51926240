"""Fairlead leads a change into production, in steps it can undo."""

__version__ = "0.1.0"
