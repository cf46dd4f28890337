"""Sourced numbers: GPUs, instances and prices, model configs. Every value carries a URL and a date."""
