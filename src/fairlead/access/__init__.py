"""Who may ask for what: tokens and roles, and the intake that every door hands its commands to."""
