"""The durable machine of one resource: read, compare, write, wait, verify, and look again."""
