"""Does the tuned run still train the same? Judged from the evidence alone."""
