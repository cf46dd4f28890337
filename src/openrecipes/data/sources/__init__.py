"""Where conversations come from: files that are indexed once and then read at any place."""
