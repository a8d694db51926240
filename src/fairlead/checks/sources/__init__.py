"""Where numbers come from, one file for each provider; `fairlead.checks.provider` finds them."""
