"""Collects the checks of every stage, runs them and computes the level."""
