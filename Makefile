# `make demo` and `make test` need nothing but Python and make: each sets up its own .venv first.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
PIP := python -m pip install --quiet --disable-pip-version-check
# Pinned here and not in constraints.txt: the CPU build is small and comes from a place of its own, without a hash. An
# open range pulls several gigabytes of CUDA packages that a machine without a GPU has no use for.
TORCH := torch==2.13.0

.PHONY: setup demo test test-all lint types format check docs figures attack wheel constraints licences clean

setup: $(READY)

# Rebuilt only when what is to be installed changes, so a second run starts at once. In setuptools' default editable
# mode, Python started in the folder above takes the checkout itself for a package called accord.
$(READY): pyproject.toml constraints.txt constraints-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Accord needs Python 3.10 or newer; set PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(BIN)/$(PIP) $(TORCH)
	$(BIN)/$(PIP) --no-deps --require-hashes --requirement constraints.txt --requirement constraints-dev.txt
	$(BIN)/$(PIP) --no-deps --no-build-isolation --config-settings editable_mode=compat --editable .
	$(BIN)/python -m pip check
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

# The guide, as a site that loads nothing from other hosts. Warnings are errors, which --quiet would hide from --strict.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "The guide: build/site/index.html"

# The pictures of README and guide, and the demo's table.
figures: demo
	$(BIN)/python benchmarks/app/readme_figures.py
	$(BIN)/python docs/tools/pictures.py

# Kills, full disks, damaged files and fuzzed calls, for MINUTES; appends what it tried to results/attack/runs.json.
MINUTES ?= 60
attack: $(READY)
	PYTHONPATH=tests $(BIN)/python -m attack --minutes $(MINUTES) $(ATTACK)

# Build the wheel with its CPU kernels compiled (three minutes of CPU time), install it into an empty environment with nothing but what it requires, and use it there.
# The environment gets no pip of its own; the one of .venv installs into it.
EMPTY := build/empty/bin/python
INTO_EMPTY := $(BIN)/python -m pip --quiet --disable-pip-version-check --python $(EMPTY)
wheel: $(READY)
	rm -rf build dist
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --config-settings=--build-option=--kernels \
		--wheel-dir dist .
	$(BIN)/python -m venv --without-pip build/empty
	$(INTO_EMPTY) install $(TORCH)
	$(INTO_EMPTY) install --no-deps --require-hashes --requirement constraints.txt
	$(INTO_EMPTY) install --no-deps dist/accord-*.whl
	$(INTO_EMPTY) check
	$(EMPTY) .ci/use_wheel.py

# Every package that Accord needs (constraints.txt) or its development adds (constraints-dev.txt), for every supported
# Python, with hashes. Versions stay as they are unless a requirement changes; remove the files to get the newest.
# A package that Accord needs on one platform only may be needed on all of them in development: it stays in both files.
COMPILE = $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.10 --generate-hashes --no-annotate \
	--custom-compile-command "make constraints" --no-emit-package torch
constraints: $(READY)
	$(BIN)/$(PIP) uv
	$(COMPILE) --output-file constraints.txt
	$(COMPILE) --extra dev --constraint constraints.txt --output-file constraints-dev.txt \
		$$(sed -n "/sys_platform/d; s/^\([a-z0-9-]*\)==.*/--no-emit-package \1/p" constraints.txt)

# docs/licences.md: the licence of every package that Accord requires.
licences: $(READY)
	$(BIN)/python .ci/list_licences.py docs/licences.md

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
