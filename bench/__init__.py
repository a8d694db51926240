"""Every figure as a ratio to a peer or to a limit, taken in the same run on one machine."""
