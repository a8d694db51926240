"""What delivery means: pure machines, no I/O, no clock, no randomness."""
