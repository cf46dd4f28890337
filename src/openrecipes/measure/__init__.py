"""Step records to the speed of a run."""
