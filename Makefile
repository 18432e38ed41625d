# Each target installs what it needs into .venv first; a machine needs only Python ≥ 3.11 and make.
PYTHON ?= python3
RUN = .venv/bin/python -m
INSTALL = .venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test test-all check docs package clean

demo: .venv/installed        ## train on the built-in corpus, translate, score, draw
	PATH="$(CURDIR)/.venv/bin:$$PATH" sh examples/demo.sh

test: .venv/installed-test check   ## everything but the slow tests
	$(RUN) pytest -n auto -q -m "not slow and not gpu"

test-all: .venv/installed-test check   ## the slow tests too
	$(RUN) pytest -n auto -q -m "not gpu"

check: .venv/installed-test  ## lint, types, layers
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy
	.venv/bin/lint-imports

docs: .venv/installed-docs   ## a searchable site from docs/ and the docstrings: site/index.html
	NO_MKDOCS_2_WARNING=1 PATH="$(CURDIR)/.venv/bin:$$PATH" mkdocs build --quiet --strict
	@echo "open site/index.html"

package: .venv/installed     ## a wheel and a source archive in dist/
	$(INSTALL) "setuptools>=77"
	rm -rf build dist
	.venv/bin/python -c "from setuptools.build_meta import *; build_wheel('dist'); build_sdist('dist')"

.venv/installed: pyproject.toml constraints.txt
	test -x .venv/bin/python || $(PYTHON) -m venv .venv
	$(INSTALL) --editable ".[serve]"
	touch $@

.venv/installed-test: .venv/installed
	$(INSTALL) --editable ".[test]"
	touch $@

.venv/installed-docs: .venv/installed
	$(INSTALL) --editable ".[docs]"
	touch $@

clean:                       ## remove what the other targets made
	rm -rf .venv build demo dist site
