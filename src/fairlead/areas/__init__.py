"""What Fairlead can lead into production, a folder for each area; areas do not know each other."""
