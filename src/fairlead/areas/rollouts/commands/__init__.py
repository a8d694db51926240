"""What people type about rollouts."""
