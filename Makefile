# Snavio. Bare `make` explains itself.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MEMBERS := $(wildcard libs/*/pyproject.toml services/*/pyproject.toml spark/pyproject.toml)
EDITABLE := $(foreach m,$(MEMBERS),-e $(dir $(m)))

.DEFAULT_GOAL := help

.PHONY: help
help: ## Explain the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  \033[1m%-16s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.installed: requirements.txt $(MEMBERS) pyproject.toml
	@command -v uv >/dev/null || $(PYTHON) -m pip install --quiet uv
	uv venv --quiet --allow-existing --python $(PYTHON) $(VENV)
	uv pip sync --quiet --python $(BIN)/python --require-hashes requirements.txt
	uv pip install --quiet --python $(BIN)/python --no-deps $(EDITABLE)
	@touch $@

.PHONY: setup
setup: $(VENV)/.installed ## Create .venv with every dependency and the snavio command

.PHONY: lock
lock: ## Resolve the dependencies again and write requirements.txt
	uv lock --quiet
	uv export --quiet --frozen --no-emit-workspace --all-groups --no-header --format requirements.txt --output-file requirements.txt

.PHONY: lint
lint: setup ## Check formatting, style, types and the direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports

.PHONY: test
test: setup ## Run every test on the embedded AWS
	$(BIN)/pytest
