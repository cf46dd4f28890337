"""Conversations become fixed-length rows, the same bytes every time."""
