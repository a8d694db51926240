"""One client per outside system; they know no area."""
