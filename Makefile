# `make demo` and `make test` do all the set-up themselves: a virtual environment in .venv, and what to put
# into it. They need Python 3.10 or newer, make and a package index.

PYTHON ?= python3
VENV ?= .venv
PIP = $(VENV)/bin/python -m pip --disable-pip-version-check
TORCHLINT = $(VENV)/bin/torchlint

.PHONY: help dev demo test lint tests generate pins release docs pictures clean

help:
	@echo "make demo      lint the example programs and show the fixes (base install, no torch)"
	@echo "make dev       the development install, with torch, and nothing else"
	@echo "make test      the whole suite (development install, with torch)"
	@echo "make lint      the static half of it: ruff, mypy, torchlint on itself"
	@echo "make tests     the other half: pytest"
	@echo "make release VERSION=0.2.0  prepare, build, check and try out a release; nothing is published"
	@echo "make docs      build the documentation site into site/"
	@echo "make pictures  take the pictures of the documentation again; needs Chromium"
	@echo "make vscode    package the extension for VS Code and test it"
	@echo "make generate  generate the documentation again"
	@echo "make pins      pin anew what the GitHub Action and the GitLab job install"
	@echo "make clean     remove the environment and all caches"

dev: $(VENV)/dev

# 0 and 1 are the answers of a linter; the demo fails only where torchlint itself does.
demo: $(VENV)/base
	$(TORCHLINT) check --exit-zero --output-format concise fixtures/programs
	$(TORCHLINT) check --diff fixtures/programs || [ $$? -eq 1 ]

test: lint tests

lint: $(VENV)/dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(TORCHLINT) check setup.py torchlint rules tests benchmarks

tests: $(VENV)/dev
	$(VENV)/bin/python -m pytest -n auto --dist worksteal

generate: $(VENV)/dev
	$(VENV)/bin/python -m torchlint.dev generate

# For all systems and versions of Python at once; setuptools is what torchlint is built with.
pins: $(VENV)/release
	echo setuptools | $(VENV)/bin/uv pip compile --quiet --upgrade --universal --python-version 3.10 --generate-hashes \
		--no-annotate --custom-compile-command "make pins" --output-file action/requirements.txt pyproject.toml -

release: $(VENV)/release
	$(VENV)/bin/python -m torchlint.dev release $(if $(VERSION),$(VERSION),$(error set VERSION, as in make release VERSION=0.2.0))

pictures: $(VENV)/docs
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/python -m torchlint.dev pictures

docs: $(VENV)/docs
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict

# Needs Node, and for its tests code-server and Chromium on the PATH: see CONTRIBUTING.md.
vscode: $(VENV)/dev
	cd editors/vscode && npm ci && npm run check && npm run package && npm test

clean:
	rm -rf editors/vscode/dist editors/vscode/node_modules editors/vscode/*.vsix
	rm -rf $(VENV) build dist site *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "torchlint needs Python 3.10 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/base: pyproject.toml setup.py | $(VENV)/bin/python
	@echo "Installing torchlint and its dependencies into $(VENV); this takes a few seconds"
	$(PIP) install --quiet --editable .
	@touch $@

# torch is pinned: the newest one can bring gigabytes of CUDA libraries along.
$(VENV)/dev: pyproject.toml setup.py constraints.txt | $(VENV)/bin/python
	@echo "Installing torchlint, torch and all development tools into $(VENV); this takes a few minutes"
	$(PIP) install --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(VENV)/base

$(VENV)/release: pyproject.toml | $(VENV)/bin/python
	$(PIP) install --quiet --editable '.[release]'
	@touch $@

$(VENV)/docs: pyproject.toml | $(VENV)/bin/python
	$(PIP) install --quiet --editable '.[docs]'
	@touch $@
