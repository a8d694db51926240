"""The doors: authorise, deduplicate, submit."""
