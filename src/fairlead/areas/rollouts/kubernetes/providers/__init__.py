"""What shares requests out, one file for each way; `provider_registry` finds them."""
