"""The small world of `fairlead demo`: a shop to release, and customers to notice."""
