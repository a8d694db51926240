"""One deployment from git: its events, its state, its machine, and what its object shows."""
