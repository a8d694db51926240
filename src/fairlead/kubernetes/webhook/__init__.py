"""The admission webhook: the API server asks before it stores an object, and we answer."""
