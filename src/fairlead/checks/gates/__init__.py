"""Who opens a gate, one file for each provider; `fairlead.checks.provider` finds them."""
