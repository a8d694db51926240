"""One module for each phase of a rollout: what it waits for, and what follows."""
