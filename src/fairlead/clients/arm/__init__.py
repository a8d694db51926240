"""Azure Resource Manager over HTTP, and APIs that speak like it; knows nothing of specs."""
