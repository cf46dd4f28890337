"""Verified recipes for training large language models, and the tool that makes them."""

__version__ = "0.1.0"
