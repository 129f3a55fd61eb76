# Every target sets up .venv by itself; all that is needed beforehand is python3 (>= 3.11), make and a package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-all test-stan lint bench clean

$(VENV)/installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

demo: $(VENV)/installed  ## the Cauchy pair, end to end: a summary and demo.png
	$(BIN)/python -m pathtemp.demo

test: lint  ## lint, types and the whole test suite
	$(BIN)/python -m pytest

test-all: $(VENV)/installed  ## every test there is, those of the front ends and the fit object included
	$(BIN)/python -m pytest tests src/pathtemp

test-stan: $(VENV)/installed  ## many Stan programs, compiled; needs a C++ compiler
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[stan]"
	$(BIN)/python -m pytest -m stan_full tests/frontends/stan

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/installed  ## problem x settings: evaluations, seconds, errors; see benchmarks/README.md
	$(BIN)/python -m benchmarks.table

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache
