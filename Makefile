# `make demo` and `make test` need nothing but Python and make: each sets up its own .venv first.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: setup demo test lint types format check figures clean

setup: $(READY)

# Rebuilt only when what is to be installed changes, so a second run starts at once.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Accord needs Python 3.10 or newer; set PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $(READY)

demo: $(READY)
	$(BIN)/accord demo

test: $(READY)
	$(BIN)/python -m pytest -n auto --cov --cov-report=term

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

check: lint types test

# The README's picture and demo table.
figures: demo
	$(BIN)/python benchmarks/readme_figures.py

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
