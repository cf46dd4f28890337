"""From a winning trial to an entry with its evidence."""
