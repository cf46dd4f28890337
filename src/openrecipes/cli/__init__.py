"""One short file a verb: parse, call, print."""
