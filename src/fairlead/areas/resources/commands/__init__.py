"""`fairlead resources …`, a file for each command."""
