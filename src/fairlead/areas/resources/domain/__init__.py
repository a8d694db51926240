"""Pure: descriptions in, types of resources with their properties out."""
