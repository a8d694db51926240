"""One kind at work: its queue, its reconciler, and who leads."""
