"""An HF config.json becomes layers, parameters and FLOPs."""
