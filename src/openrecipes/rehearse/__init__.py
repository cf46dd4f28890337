"""The torch side: Megatron-Core on CPU processes. Only ever started as a subprocess."""
