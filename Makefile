# Everything a person or CI runs. Needs only Python 3.11+ and make; each target sets up what it uses.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
SOURCES := src tests bench docs examples scripts
# Versions come from the lock file; pyproject.toml says which others would do.
INSTALL := $(BIN)/pip install -q --disable-pip-version-check -c requirements.lock
# More than two cores can use: most tests wait for something most of the time.
WORKERS ?= 4
PYTEST := $(BIN)/pytest -n $(WORKERS) --dist worksteal
ROOM ?=
# Without compiled files every program a test starts compiles the whole package first.
unexport PYTHONDONTWRITEBYTECODE
ROUNDS ?= 10

.PHONY: run test quick check format bench soak stress docs vendor picture screenshots lock audit release hooks clean

run: $(VENV)/.run
	@$(BIN)/stringd serve --welcome

test: $(VENV)/.dev
	@$(BIN)/python -m tests.support.machine
	@$(BIN)/python -m tests.support.suite -n $(WORKERS) $(ARGS)

quick: $(VENV)/.dev
	@$(BIN)/python -m tests.support.quick $(ROOM)

check: $(VENV)/.dev
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports
	@python3 scripts/page_types.py
	@$(BIN)/python scripts/audit.py

format: $(VENV)/.dev
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

bench: $(VENV)/.dev
	$(BIN)/python -m bench $(ARGS)

soak: $(VENV)/.dev
	$(BIN)/pytest -m soak --timeout 7200 --hypothesis-profile explore $(ARGS)
	$(PYTEST) -m "hypothesis and not soak" --hypothesis-profile explore $(ARGS)

stress: $(VENV)/.dev
	@$(BIN)/python -m tests.support.stress $(ROUNDS)

docs: $(VENV)/.dev
	$(BIN)/python docs/build.py

vendor:
	@python3 scripts/vendor.py

picture: $(VENV)/.dev
	$(BIN)/python docs/picture.py

screenshots: $(VENV)/.dev
	$(BIN)/python docs/screenshots.py

lock: | $(BIN)/python
	@$(BIN)/python scripts/lock.py

audit: | $(BIN)/python
	@$(BIN)/python scripts/audit.py

release: | $(BIN)/python
	@$(BIN)/python scripts/release.py

hooks: $(VENV)/.dev
	@$(INSTALL) 'pre-commit>=4'
	@$(BIN)/pre-commit install -t pre-commit -t commit-msg

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "stringd needs Python 3.11 or newer on the PATH" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml requirements.lock | $(BIN)/python
	@echo "Installing stringd into $(VENV) (once) ..."
	@$(INSTALL) -e .
	@touch $@

$(VENV)/.dev: pyproject.toml requirements.lock | $(BIN)/python
	@echo "Installing stringd, its extras and the test tools into $(VENV) (once) ..."
	@$(INSTALL) -e '.[all,dev]'
	@touch $@ $(VENV)/.run
