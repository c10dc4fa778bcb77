# Every target creates .venv if it is missing, and updates it if pyproject.toml or constraints.txt changed:
# `demo` installs what the program needs, the others also what developers need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt
TIMED := .ci/timed
# Benchmarks that need nothing but this machine; DEVICE=cuda on a GPU.
FIGURES := turn_latency throughput timing_fidelity feedback_cost
DEVICE ?= cpu
# Tests start hundreds of processes; without bytecode files each would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test tests test-all check fmt bench attacks docs site clean integrations

$(CORE): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(TIMED) "installing kevin-env, PyTorch and Triton into $(VENV): about 2 GB and 2 minutes" $(PIP) -e .
	@touch $@

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(TIMED) "installing kevin-env and its developers' packages into $(VENV): about 4 GB and 4 minutes" \
		$(PIP) -e '.[dev]'
	@touch $(CORE) $@

demo: $(CORE)
	@$(BIN)/kevin-env demo

check: $(STAMP)
	@$(TIMED) "linter" $(BIN)/ruff check --quiet .
	@$(TIMED) "formatter" $(BIN)/ruff format --quiet --check .
	@$(TIMED) "imports" $(BIN)/lint-imports
	@$(TIMED) "lines per package" $(BIN)/python .ci/budgets.py
	@$(TIMED) "types: about 90 s" $(BIN)/pyright -p .

# Tests that share resources are grouped in one process. The folders' long groups come first.
PYTEST := $(BIN)/pytest --numprocesses 2 --dist loadgroup --no-loadscope-reorder --durations 10

# Tests mostly wait for other processes: the checks run beside them.
test: $(STAMP)
	@echo "checks, and tests beside them: about 9 minutes on two cores"
	@$(MAKE) --no-print-directory --jobs 2 check tests

tests: $(STAMP)
	@$(PYTEST) -m "not full" --ignore tests/integrations

# The tests that `test` leaves out: whole corpus, all problems, trainers, servers, headers, browser, wheel.
test-all: $(STAMP)
	$(PYTEST) -m full

# Trainers with conflicting pins, each tested in its own environment, without what they need only to
# train (vLLM, flash-attn). NEMO_GYM and PRIME_RL, if given, are checkouts of what is on no index.
FRAMEWORKS := openenv skyrl skyrl_trainer tinker trl verifiers verl wandb \
	$(if $(NEMO_GYM),nemo_gym) $(if $(PRIME_RL),prime_rl)
PACKAGES_nemo_gym := . aiohttp 'anthropic<=0.109.2' devtools fastapi httpx hydra-core itsdangerous \
	'mcp<2' 'openai<=2.7.2' orjson pandas psutil pydot python-multipart 'ray[default]' uvicorn uvloop wandb yappi
PATH_nemo_gym = $(NEMO_GYM)
PACKAGES_openenv := .[openenv] hatchling
TESTS_openenv := tests/integrations/test_openenv*.py
PACKAGES_prime_rl := .[verifiers]
PATH_prime_rl = $(PRIME_RL)/packages/prime-rl-configs/src
PACKAGES_skyrl := .[skyrl]
PACKAGES_skyrl_trainer := .[skyrl] skyrl==0.3.0 accelerate aiohttp fastapi func_timeout hydra-core jaxtyping \
	loguru omegaconf orjson polars ray==2.56.0 tensordict torchdata uvicorn uvloop wandb
PACKAGES_tinker := .[tinker]
PACKAGES_trl := .[trl] fastapi opentelemetry-api starlette uvicorn
TESTS_trl := tests/integrations/test_trl.py tests/integrations/test_grpo.py
PACKAGES_verifiers := .[verifiers]
PACKAGES_wandb := .[wandb]
PACKAGES_verl := . verl==0.9.1 cachetools fastapi pyarrow uvicorn

integrations: $(FRAMEWORKS:%=integration-%)

integration-%: $(STAMP)
	$(PYTHON) -m venv $(VENV)/integrations/$*
	$(VENV)/integrations/$*/bin/python -m pip install --quiet --disable-pip-version-check \
		$$(grep -E '^(torch|triton|pytest.*)==' constraints.txt) -e $(PACKAGES_$*)
	PYTHONPATH=$(PATH_$*) $(VENV)/integrations/$*/bin/python -m pytest $(or $(TESTS_$*),tests/integrations/test_$*.py)

fmt: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)
	for script in $(FIGURES); do $(BIN)/python benchmarks/$$script.py --device $(DEVICE) || exit 1; done

# Every attack and honest kernel of tests/submissions, judged on DEVICE; fails if one is misjudged.
attacks: $(STAMP)
	$(BIN)/python benchmarks/attacks.py --device $(DEVICE)

# Regenerates what tests/test_docs.py checks: the figures and the picture of the replay screen. That of
# a report is drawn by benchmarks/report_picture.py, which plays the run first and takes minutes.
docs: $(STAMP)
	$(BIN)/kevin-env replay examples/demo.h200.jsonl --turn 5 --size 118x26 --export docs/replay.svg
	$(BIN)/python benchmarks/figures.py

# The docs as a site, in build/site/html: any web server can serve the folder, and `python -m http.server`
# does here. Fails if a link leads nowhere.
site: $(STAMP)
	@$(TIMED) "site: about 20 s" $(BIN)/python docs/site/build.py

clean:
	rm -rf $(VENV) build dist
