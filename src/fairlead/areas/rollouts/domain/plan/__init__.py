"""What a user asks of a rollout, and the row of steps it becomes."""
