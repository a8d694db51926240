"""The area of rollouts: a changed workload goes through steps and ends promoted or rolled back."""
