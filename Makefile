# make demo    learn the pendulum and look at the result        make test    run the test suite
# make lint    format, lint and type checks                     make bench   ratios, measured side by side
# make evidence  the experiments, for results/ (4 hours)        make theorems  the laboratory, for results/
# make deep    the experiments with networks (4 hours)          make own     the examples, five seeds each (half an hour)
# make lock    renew the locked versions                        make pictures  one of each task, for docs/tasks

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed

.PHONY: env demo test lint bench evidence deep own theorems pictures lock clean

env: $(INSTALLED)

$(INSTALLED): pyproject.toml requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "sbsrl needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint requirements.lock --editable '.[dev,minari,mujoco,onnx,video]'
	touch $@

demo: env
	rm -rf runs/demo
	$(BIN)/sbsrl train pendulum --out runs/demo

test: env
	$(BIN)/python -m pytest -n auto --dist worksteal

lint: env
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: env
	taskset -c 0 $(BIN)/python benchmarks/belief.py
	taskset -c 0 $(BIN)/python benchmarks/planning.py
	taskset -c 0 $(BIN)/python benchmarks/laboratory.py
	taskset -c 0 $(BIN)/python benchmarks/deep.py
	taskset -c 0 $(BIN)/python benchmarks/deep.py bodies
	taskset -c 0 $(BIN)/python benchmarks/actor_critic.py
	taskset -c 0 $(BIN)/python benchmarks/environments.py
	taskset -c 0 $(BIN)/python benchmarks/before.py

evidence: env
	set -e; for figure in gp-safety gp-exploration gp-detour gp-ablation gp-margins gp-choices gp-risk; do $(BIN)/sbsrl reproduce $$figure; done

deep: env
	set -e; for figure in flagship deep-mean deep-baselines deep-bodies deep-monitor car deep-calibration; do $(BIN)/sbsrl reproduce $$figure; done

own: env
	$(BIN)/python results/own-systems/measure.py

theorems: env
	$(BIN)/sbsrl reproduce theorems

pictures: env
	$(BIN)/python docs/tasks/draw.py

lock:
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	build/lock/bin/pip install --quiet --disable-pip-version-check '.[dev,minari,mujoco,onnx,video]'
	build/lock/bin/pip freeze --exclude sbsrl | sed 's/+cpu$$//' > requirements.lock  # any build of torch will do

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
