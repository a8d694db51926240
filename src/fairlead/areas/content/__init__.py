"""The area of content: versioned configuration, released by share of a population."""
