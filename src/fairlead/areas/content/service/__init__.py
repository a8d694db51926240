"""The service that clients ask: everything is made at the start, a request only chooses."""
