# Farhand: every task of the house. `make help` lists them.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: run test check proof bench format clean help static core-coverage debian
MAKEFLAGS += --no-print-directory
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

BIN := .venv/bin
STAMP := .venv/.installed
LOGS := .cache

# Run a command; show what it printed only when it fails.
quietly = mkdir -p $(LOGS); $(2) > $(LOGS)/$(1).log 2>&1 || { cat $(LOGS)/$(1).log; exit 1; }

run: $(STAMP) ## set up what is needed and serve the demo agent; it says what to try in another terminal
	@$(BIN)/farhand demo

test: debian static core-coverage ## everything: static checks, coverage of the core, all tests
	@$(BIN)/python -m pytest -n auto

check: static ## the fast inner loop: static checks and unit tests, below a minute
	@$(BIN)/python -m pytest -n auto tests --ignore=tests/suites --ignore=tests/docs --ignore=tests/proofs \
		--ignore=tests/stores --ignore=tests/cli -m "not postgres"

proof: debian $(STAMP) ## the proofs in their long form: the model, the simulated world, crashes, kill -9; a quarter of an hour
	@$(BIN)/python -m proofs

bench: $(STAMP) ## measure speed
	@$(BIN)/python -m bench

format: $(STAMP) ## format the code and repair what the linter can repair
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format --quiet .

clean: ## remove everything that was made, .venv included
	@rm -rf .venv build dist src/*.egg-info .cache .coverage .coverage.* .hypothesis .pytest_cache .ruff_cache \
		.import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

static: $(STAMP)
	@$(BIN)/ruff format --quiet --check . || { echo "not formatted: run \`make format\`"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(call quietly,basedpyright,$(BIN)/basedpyright)
	@$(call quietly,imports,$(BIN)/lint-imports --no-logo --cache-dir .cache/imports)

# The tests of the core alone must reach every branch of the core.
core-coverage: $(STAMP)
	@$(call quietly,core-tests,$(BIN)/coverage run --data-file=$(LOGS)/coverage -m pytest tests/core)
	@$(call quietly,core-coverage,$(BIN)/coverage report --data-file=$(LOGS)/coverage --include='src/farhand/core/*' \
		--fail-under=100)

# What the tests need that does not come from PyPI: a real PostgreSQL, and spin, which wants a C compiler.
PACKAGES := postgresql spin gcc libc6-dev
debian:
	@if ! command -v spin > /dev/null || ! command -v cc > /dev/null \
		|| ! ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
			echo "installing $(PACKAGES)"; mkdir -p $(LOGS); \
			{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(PACKAGES); } \
				> $(LOGS)/debian.log 2>&1 || { cat $(LOGS)/debian.log; exit 1; }; \
		else \
			echo "the tests need $(PACKAGES); on Debian and Ubuntu: apt-get install $(PACKAGES)" >&2; exit 1; \
		fi; \
	fi

$(STAMP): pyproject.toml constraints.txt
	@python=; for candidate in python3.11 python3; do \
		if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then \
			python=$$candidate; break; \
		fi; \
	done; \
	if [ -z "$$python" ]; then \
		echo "Farhand needs Python 3.11 or newer: neither python3.11 nor python3 is one." >&2; exit 1; \
	fi; \
	if ! $(BIN)/python -m pip --version > /dev/null 2>&1; then \
		if ! "$$python" -c 'import ensurepip, venv' 2> /dev/null; then \
			echo "$$python cannot make virtual environments; on Debian and Ubuntu: apt-get install python3-venv" >&2; \
			exit 1; \
		fi; \
		"$$python" -m venv --clear .venv; \
	fi
	@echo "installing into .venv"
	@$(BIN)/python -m pip install -qq --no-input --disable-pip-version-check -c constraints.txt -e '.[test]'
	@touch $@
