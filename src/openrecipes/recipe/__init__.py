"""One recipe: a strict YAML file, its typed fields, its evidence, and what follows from its numbers."""
