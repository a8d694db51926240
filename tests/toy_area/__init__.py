"""An area in a folder of its own: all that an area can bring, as small as it can be."""
