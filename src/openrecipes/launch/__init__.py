"""Where a command runs."""
