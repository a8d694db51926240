"""What installs an operator in a cluster: its kinds, its rights, its pod."""
