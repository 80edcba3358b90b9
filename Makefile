# `make demo` and `make test` need nothing but Python and make: each sets up its own .venv first.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: setup demo test test-all lint types format check figures clean

setup: $(READY)

# Rebuilt only when what is to be installed changes, so a second run starts at once. In setuptools' default editable
# mode, Python started in the folder above takes the checkout itself for a package called accord.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Accord needs Python 3.10 or newer; set PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		--config-settings editable_mode=compat --editable '.[dev]'
	@touch $(READY)

demo: $(READY)
	$(BIN)/accord demo

# One representative of each kernel form; names the slowest tests.
test: $(READY)
	$(BIN)/python -m pytest -n auto --durations=10

# Every combination. Coverage is not measured over Triton's interpreter, which it would slow down several times.
test-all: $(READY)
	$(BIN)/python -m pytest -n auto -m "not interpreter" --durations=25 --cov --cov-report=term
	$(BIN)/python -m pytest -n auto -m interpreter --durations=10

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# What CI runs, with the demo.
check: lint types test-all

# The README's picture and demo table.
figures: demo
	$(BIN)/python benchmarks/readme_figures.py

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
