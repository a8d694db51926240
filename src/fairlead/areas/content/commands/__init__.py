"""What people type about content."""
