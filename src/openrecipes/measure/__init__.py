"""Step records become tokens per second per GPU."""
