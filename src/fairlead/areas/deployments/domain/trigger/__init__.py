"""One reason to deploy: a push, or a person."""
