"""Pure: what is requested, what is planned, and the machines that walk it."""
