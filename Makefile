# Two commands are enough: `make demo` and `make test`. Both install what is missing first.

PYTHON := .venv/bin/python
# Compiled in parallel; lower it on a machine with little memory (each job may take 1 GB).
JOBS ?= $(shell nproc)
export JOBS
export CMAKE_BUILD_PARALLEL_LEVEL = $(JOBS)
# pip leaves the modules of .venv to be compiled by those who import them first. Where nobody may
# keep the outcome, each process compiles them again: 4 s for PyTorch instead of 1.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test test-quick test-gpu test-clang bench check clean

help:
	@echo 'make demo        set up, then find a wrong epsilon in a small Llama'
	@echo 'make test        set up, then run every test'
	@echo 'make test-quick  without the sanitizer build and the slow tests'
	@echo 'make test-gpu    values of tensors on the accelerator of this machine, and their cost'
	@echo 'make test-clang  unit tests built by clang++-14'
	@echo 'make bench       set up, then run every benchmark (about 30 minutes)'
	@echo 'make check       layers, sizes, documents, lint'
	@echo 'make setup       only install and build what is missing'
	@echo 'make clean       remove build/ and .venv/'

setup:
	@tools/bootstrap.sh

demo: setup
	@$(PYTHON) -W ignore examples/find_wrong_epsilon.py

# The compiler works while Python packages are fetched and unpacked (MindSpore alone is 2 GB); the
# wheel then takes from ccache what was compiled. The test device needs the headers of torch.
test:
	@tools/bootstrap.sh packages test-packages web
	@tools/bootstrap.sh release & compiling=$$!; \
	  tools/bootstrap.sh python && { JOBS=1 tools/bootstrap.sh test-device & device=$$!; \
	  tools/bootstrap.sh upstream mindspore optional parallel cluster objects; status=$$?; wait $$device || status=$$?; }; \
	  status=$${status:-3}; wait $$compiling; exit $$status
	@tools/bootstrap.sh native
	@$(PYTHON) tools/run_tests.py

test-quick: setup
	@$(PYTHON) tools/run_tests.py --quick

# With the PyTorch of the caller's environment where PYTHON names another one than that of .venv.
test-gpu: setup
	@$(PYTHON) -m pytest -q -rs tests/gpu

test-clang: setup
	@$(PYTHON) tools/run_tests.py --only clang

check: setup
	@$(PYTHON) tools/run_tests.py --only checks

bench:
	@tools/bootstrap.sh packages python web native upstream
	@$(PYTHON) benchmarks/run_all.py

clean:
	rm -rf build .venv
