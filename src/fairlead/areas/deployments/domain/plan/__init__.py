"""Plans: which steps a deployment takes, in which order, and what decides between branches."""
