# The two commands of the README are `make demo` and `make test`; both build .venv first.
PYTHON ?= python3
# Tests run in several processes; one BLAS thread in each is faster than threads that wait for one another.
export OPENBLAS_NUM_THREADS ?= 1
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-all lint format bench docs clean

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "ksame needs Python 3.10 or newer; run: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	@echo "installing ksame and the tools of developers into $(VENV): a minute or two, 1.7 GB"
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

demo: $(STAMP)
	$(BIN)/ksame demo --output demo --force

test: $(STAMP)
	$(BIN)/python -m pytest -n auto -m 'not slow and not shared'

test-all: $(STAMP)
	$(BIN)/python -m pytest -n auto

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)
	$(BIN)/python -m benchmarks

docs: $(STAMP)
	$(BIN)/python -m tools.docs_pages docs
	$(BIN)/zensical build --strict --clean --config-file mkdocs.yml
	@echo "open site/index.html"

clean:
	rm -rf $(VENV) demo site build dist .mypy_cache .pytest_cache .ruff_cache
