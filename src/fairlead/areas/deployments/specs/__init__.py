"""Applications, environments and clusters as people write them, and what is built from them."""
