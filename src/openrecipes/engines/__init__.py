"""One file a trainer: what its command says, and what its log tells."""
