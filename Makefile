# Snavio. Bare `make` explains itself: a `##` comment after a target is its help, a `##@` line starts a group.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# uv from the path, or a private copy in .tools that leaves the Python of the machine as it is.
UV := $(or $(shell command -v uv),.tools/bin/uv)
MEMBERS := $(wildcard libs/*/pyproject.toml services/*/pyproject.toml spark/pyproject.toml)
# What runs in the container image; what these depend on comes with them.
IMAGE := $(notdir $(patsubst %/,%,$(dir $(wildcard services/*/pyproject.toml)))) provisioning
EXPORT = $(UV) export --quiet --frozen --no-emit-workspace --no-header --format requirements.txt
EDITABLE := $(foreach m,$(MEMBERS),-e $(dir $(m)))

.PHONY: help
help:
	@printf 'Snavio: a command bus for many tenants on AWS. On a bare machine, start with \033[1mmake demo\033[0m.\n'
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  \033[1m%-16s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Start
.PHONY: setup
setup: $(VENV)/.installed ## Create .venv with every locked dependency and the snavio command

$(VENV)/.installed: requirements.txt pyproject.toml $(MEMBERS) | $(UV)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "setup: Snavio needs Python 3.11 or newer; name one with PYTHON=..." >&2; exit 1; }
	@tools/ensure-java
	$(UV) venv --quiet --allow-existing --python $(PYTHON) $(VENV)
	$(UV) pip sync --quiet --python $(BIN)/python --require-hashes requirements.txt
	$(UV) pip install --quiet --python $(BIN)/python --no-deps $(EDITABLE)
	@touch $@

.tools/bin/uv:
	@PYTHON=$(PYTHON) tools/fetch-uv .tools

.PHONY: demo
demo: setup ## Start the whole platform, drive it as tenants would, and show what happened
	$(BIN)/snavio demo

.PHONY: up
up: setup ## Start the whole platform and leave it up until Ctrl-C
	@exec $(BIN)/snavio up

##@ Check
.PHONY: test
test: setup ## Run every test on the embedded AWS
	$(BIN)/pytest

.PHONY: test-unit
test-unit: setup ## Run the tests that need no AWS endpoint
	$(BIN)/pytest -m "not aws"

.PHONY: test-localstack
test-localstack: setup ## Run the tests that need AWS against a LocalStack container (needs Docker)
	@docker info >/dev/null 2>&1 || { echo "test-localstack: Docker does not answer; start it, or run make test instead." >&2; exit 1; }
	SNAVIO_TEST_LOCALSTACK=1 $(BIN)/pytest -m aws

.PHONY: lint
lint: setup ## Check format, style, types, the direction of imports, the lock and what is generated
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tools/generate --check
	$(BIN)/pytest -q tests/tidy

.PHONY: fuzz
fuzz: setup ## Fuzz the ingress with a million inputs, then decoders and the HTTP API (some minutes)
	$(BIN)/python tests/fuzz/campaign.py
	$(BIN)/pytest --hypothesis-profile=deep tests/fuzz services/gateway/tests/test_gateway_fuzz.py

.PHONY: format
format: setup ## Rewrite the code in the one format and fix what can be fixed safely
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

.PHONY: simulate
simulate: setup ## Simulate the platform with faults: SEED=1234, SEEDS=1000, or until Ctrl-C
	@PYTHONPATH=tests:tests/support exec $(BIN)/python -m simulation \
		$(if $(SEED),--seed $(SEED)) $(if $(SEEDS),--seeds $(SEEDS)) $(if $(MUTANT),--mutant $(MUTANT)) $(if $(TRACE),--trace)

##@ Measure
.PHONY: bench
bench: setup ## Measure what is promised beside floors and alternatives: a table, and build/bench.json (three to six minutes)
	$(BIN)/python bench --json build/bench.json

.PHONY: bench-docs
bench-docs: setup ## Keep the last runs' figures, Spark's too, as those of docs/performance.md
	cp build/bench.json bench/last-run.json
	cp build/bench-spark.json bench/last-spark-run.json
	$(BIN)/python tools/generate

.PHONY: bench-spark
bench-spark: setup ## Measure the audit against a bare read and groupBy, 2 and 20 million rows
	$(BIN)/python spark/bench/bench_spark.py --millions 2 --millions 20

##@ Deploy
.PHONY: package-emr
package-emr: | $(UV) ## Pack the Spark jobs for EMR Serverless into dist/emr; PYTHON_HOME=… packs a Python 3.11 you have
	UV=$(UV) deploy/emr/package.sh dist/emr

##@ Keep
.PHONY: docs
docs: setup ## Write docs/reference and the dashboards again from the code
	$(BIN)/python tools/generate

.PHONY: lock
lock: | $(UV) ## Resolve the dependencies again and write both requirements.txt
	$(UV) lock --quiet
	$(EXPORT) --all-groups --output-file requirements.txt
	$(EXPORT) --no-dev $(addprefix --package snavio-,$(IMAGE)) --output-file deploy/requirements.txt

.PHONY: clean
clean: ## Remove what the other targets made
	rm -rf $(VENV) .tools build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find libs services tests -name __pycache__ -type d -prune -exec rm -rf {} +
