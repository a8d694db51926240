"""The operator as a process: caches always, and an engine behind the kinds while it leads."""
