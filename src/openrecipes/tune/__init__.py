"""Propose, run, learn, verify, publish; and the journal that makes it resumable."""
