"""Resources of a cloud as objects of a cluster."""
