"""Which layouts are legal, and which of them is likely fastest."""
