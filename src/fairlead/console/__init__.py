"""What commands share: options, printing, the client of our own API; it knows no area."""
