"""The rows that the recipes name: 6,400 rows of 8,192 tokens from Tulu 3, with the Qwen3.5 tokenizer and loss mask.

    python data/generate_fixed_sft.py --source hf:allenai/tulu-3-sft-mixture@COMMIT --tokenizer CHECKPOINT --out DIR

This is `openrecipes data build` with the recipe's sizes filled in; every other option of it is taken too.
The permutation is OpenRecipes' own, so the rows are not the ones whose hashes an entry by another builder records.
"""

from __future__ import annotations

import sys

from openrecipes.cli.main import main

RECIPE = {"--loss-mask": "qwen3_5", "--row-tokens": "8192", "--rows": "6400", "--seed": "42"}

if __name__ == "__main__":
    given = sys.argv[1:]
    named = {argument.partition("=")[0] for argument in given}
    filled = [word for option, value in RECIPE.items() if option not in named for word in (option, value)]
    sys.argv[1:] = ["data", "build", *filled, *given]
    main()
