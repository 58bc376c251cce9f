# ql-sidecar: what a person or a build calls. `make help` lists it.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help install build demo demo-clean test lint bench migrate tick runs clean
.DELETE_ON_ERROR:

sources := $(shell find sidecar test migrations shell crontab-templates -type f 2>/dev/null) scripts/build.mjs package.json
sidecar := dist/ql-sidecar/bin/ql-sidecar
data := $(if $(DATA_DIR),--data-dir "$(DATA_DIR)")

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1|/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-20s %s\n", $$1, $$2 }'

install: node_modules/.package-lock.json ## install what the build needs (npm)

node_modules/.package-lock.json: package.json package-lock.json
	@scripts/install-packages.sh
	@touch $@

build: dist/ql-sidecar/VERSION ## build dist/ql-sidecar, the artifact

dist/ql-sidecar/VERSION: node_modules/.package-lock.json $(sources)
	@node scripts/build.mjs

demo: ## a minute of real crond: six tasks, the ledger that comes of it
	@scripts/demo/demo.sh

demo-clean: ## remove what the demo left
	@rm -rf .demo

test: build ## all tests
	@node scripts/test.mjs

lint: install ## types, lint, shellcheck, shfmt
	@scripts/lint.sh

bench: build ## measure against the floors (minutes)
	@node scripts/bench/bench.mjs

migrate: build ## make or update the ledger: make migrate DATA_DIR=/ql/data
	@$(sidecar) migrate $(data)

tick: build ## one pass of work: make tick DATA_DIR=/ql/data
	@$(sidecar) tick $(data)

runs: build ## list Runs: make runs DATA_DIR=/ql/data
	@$(sidecar) runs $(data)

clean: demo-clean ## remove everything that was built
	@rm -rf build dist node_modules
