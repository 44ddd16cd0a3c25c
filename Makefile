# Every verb works in a fresh clone; see CONTRIBUTING.md. On Debian the tests install what they
# need as root (PostgreSQL, Chromium, bubblewrap, and an S3 server built with Go).
SHELL := /bin/bash
BIN := .venv/bin
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

# Workers of pytest-xdist; more than the cores gains nothing.
TEST_WORKERS ?= auto
# More for pytest, such as TEST_ARGS="-k postgres".
TEST_ARGS ?=
# More for the demo's "proctor run"; see scripts/demo.sh.
DEMO_ARGS ?=

.PHONY: help setup demo test services lint gen bench clean

help: ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12

setup: .venv/.stamp-dev ## .venv with all tools, from the lock; quick when nothing changed

# The stamps lie in .venv, so they go with it. Whoever has the tools has the program too.
.venv/.stamp-dev: pyproject.toml uv.lock scripts/setup.sh scripts/compile_start.py
	@scripts/setup.sh dev
	@touch .venv/.stamp-run $@

.venv/.stamp-run: pyproject.toml uv.lock scripts/setup.sh scripts/compile_start.py
	@scripts/setup.sh run
	@touch $@

demo: .venv/.stamp-run ## a whole run of an example, graded, with its report
	@scripts/demo.sh $(DEMO_ARGS)

services: .venv/.stamp-dev # what the tests need from Debian and Go
	@$(BIN)/python -m tests.services install

test: services ## every test, on real servers, with coverage
	@$(BIN)/python -m pytest -n $(TEST_WORKERS) --cov --cov-report=term $(TEST_ARGS)

lint: .venv/.stamp-dev ## what a change must pass; pre-commit runs the same
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/typos
	@git ls-files -z | xargs -0 $(BIN)/detect-private-key
	@git ls-files -z | xargs -0 $(BIN)/check-added-large-files --enforce-all --maxkb=1024

	@scripts/generate.sh --check

gen: .venv/.stamp-dev ## write the generated files (docs/reference)
	@scripts/generate.sh

bench: .venv/.stamp-dev ## numbers against their budgets (tests/bench)
	@$(BIN)/python -m tests.bench

clean: ## remove .venv and all that tools have left
	rm -rf .venv .cache build dist *.egg-info .coverage* htmlcov .proctor
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
