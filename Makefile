# Every target makes .venv when it is missing or when what it is made from has changed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Those that need nothing but this machine; DEVICE=cuda where it has a GPU.
FIGURES := turn_latency throughput timing_fidelity feedback_cost
DEVICE ?= cpu
# Tests start hundreds of processes: each would compile all modules again where Python is kept from writing bytecode.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all check fmt bench clean integrations

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: $(STAMP)
	$(BIN)/kevin-env demo

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --threads 2 -p .
	$(BIN)/lint-imports

# Tests that share something stay in one process.
PYTEST := $(BIN)/pytest --numprocesses 2 --dist loadgroup --durations 10

test: check
	$(PYTEST) -m "not full" --ignore tests/integrations

# What `test` leaves out: the whole corpus, all problems, trainers and servers, all headers, browser and wheel.
test-all: $(STAMP)
	$(PYTEST) -m full

# Trainers whose pins exclude each other, each tested in an environment of its own.
integrations: integration-skyrl integration-tinker integration-trl integration-verifiers

integration-%: $(STAMP)
	$(PYTHON) -m venv $(VENV)/integrations/$*
	$(VENV)/integrations/$*/bin/python -m pip install --quiet --disable-pip-version-check \
		$$(grep -E '^(torch|triton|pytest|pytest-timeout)==' constraints.txt) -e '.[$*]'
	$(VENV)/integrations/$*/bin/python -m pytest tests/integrations/test_$*.py

fmt: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)
	for script in $(FIGURES); do $(BIN)/python benchmarks/$$script.py --device $(DEVICE) || exit 1; done

clean:
	rm -rf $(VENV) build dist
