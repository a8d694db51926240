"""GitOps: objects of a cluster kept as a git repository has them, by intents of its users."""
