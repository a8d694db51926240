"""What providers of routes share: backends, writes, weights, and the marks on their objects."""
