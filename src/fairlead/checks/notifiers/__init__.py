"""Who hears news, one file for each provider; `fairlead.checks.provider` finds them."""
