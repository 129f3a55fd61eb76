# Every target sets up .venv by itself; all that is needed beforehand is python3 (>= 3.11), make and a package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-all test-slow test-programs test-release test-versions test-browser docs dist lint style bench experiments clean

INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable

$(VENV)/python: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) ".[plots]"
	touch $@

$(VENV)/installed: $(VENV)/python
	$(INSTALL) ".[dev]"
	touch $@

demo: $(VENV)/python  ## the Cauchy pair, end to end: a summary and demo.png
	$(BIN)/python -m pathtemp.demo

PYTEST = $(BIN)/python -m pytest -n 2 --dist worksteal

test: style  ## lint, types and the quick tests, on two cores: six minutes at most
	$(BIN)/mypy & types=$$!; $(PYTEST); tests=$$?; wait $$types && exit $$tests

test-all: test test-slow test-programs test-release  ## everything: many seeds, the site, the browser, many programs

test-slow: $(VENV)/installed docs  ## many seeds, long runs, the site, and the report page where there is a browser
	XLA_FLAGS="$(XLA_FLAGS) --xla_backend_optimization_level=1" $(PYTEST) -m slow
	if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then $(MAKE) test-browser; else \
	  echo "chromium and chromedriver are not installed: the report page was NOT tested in a browser"; fi

test-programs: $(VENV)/installed  ## many Stan, PyMC and NumPyro programs; Stan's need a C++ compiler
	$(PYTEST) -m "stan_full or programs_full" tests/frontends tests/test_cli.py

test-release: $(VENV)/installed  ## the wheel and the sdist in empty environments, and the first hour in four languages
	$(BIN)/python -m pytest -m release tests/release

test-versions:  ## a fast part of the suite on every Python here, and with the lowest versions allowed; see tests/versions.py
	$(PYTHON) tests/versions.py

test-browser: $(VENV)/installed  ## the report page in Chromium; needs chromium and chromedriver
	$(INSTALL) ".[browser]"
	$(BIN)/python -m pytest -m browser tests/browser

docs: $(VENV)/installed  ## the site in build/site; a warning is an error
	$(INSTALL) ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir build/site

dist: $(VENV)/installed  ## a wheel and an sdist in dist/, installed in an empty environment and tried there
	$(BIN)/python tests/release/make_dist.py

style: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lint: style
	$(BIN)/mypy

bench: $(VENV)/installed  ## problem x settings: evaluations, seconds, errors; see benchmarks/README.md
	$(BIN)/python -m benchmarks.table

experiments: $(VENV)/installed  ## the paper's figures; hours, so try QUICK=1 or NAMES="link cauchy" first
	$(BIN)/python -m experiments $(or $(NAMES),all) $(if $(QUICK),--quick)

clean:
	rm -rf $(VENV) .venvs .mypy_cache .ruff_cache
