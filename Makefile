# make quickstart   create .venv, install, tune the tiny model on CPU processes (minutes, no GPU)
# make test         the same installation, then the test suite
# make check        lint, format, types, import order, generated files
# make bench        every figure the README quotes
#
# PyPI's torch for Linux is the CUDA build of several gigabytes. To take the CPU wheel instead:
#   make quickstart TORCH="torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"

PYTHON ?= python3
TORCH ?= torch==2.13.0
BIN := .venv/bin
OUT ?= out/tiny-qwen3.5-moe

.PHONY: quickstart test check bench clean

quickstart: .venv/installed
	$(BIN)/openrecipes tune examples/tiny-qwen3.5-moe.workload.yaml --out $(OUT)

test: .venv/installed
	$(BIN)/pytest -n 2 --dist loadscope

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/openrecipes schema | diff - schema/recipe.schema.yaml
	$(BIN)/openrecipes check recipes

bench: .venv/installed
	for benchmark in benchmarks/*.py; do $(BIN)/python $$benchmark || exit 1; done

.venv/installed: pyproject.toml Makefile
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet $(TORCH)
	$(BIN)/pip install --quiet --editable '.[rehearse,data,fast,ray,dev]'
	touch $@

clean:
	rm -rf .venv out build dist
