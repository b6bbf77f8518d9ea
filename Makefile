PYTHON ?= $(shell command -v python3.11 || command -v python3)
CONSTRAINTS ?= constraints.txt
BIN := .venv/bin
READY := .venv/.ready
TESTABLE := .venv/.testable
DOCUMENTABLE := .venv/.documentable
NPM := tests/suites/node_modules/.ready
INSTALL = $(BIN)/python -m pip install -qq --no-compile -c $(CONSTRAINTS)  # Python compiles what it imports
# Half of the tests that are not core's: two processes collect theirs, where workers collect all.
ANSWERS := $(addprefix tests/,cli evaluate export respond retrieve serve)
# Let subprocesses of tests write and reuse compiled modules.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo picture docs notebooks test types verify-types test-answers test-builds test-core test-browser test-ray test-package test-slow test-suites test-llm search format bench bench-clustering bench-extractive bench-llm bench-seq2seq bench-query bench-responses bench-ray soak

demo: $(READY)  ## index real documentation and ask it at three levels
	$(BIN)/hierindex demo
	@echo "source .venv/bin/activate   puts hierindex on the path."

picture: $(READY)  ## draws the demo's tree for README
	$(BIN)/hierindex demo
	rm -f notebooks/tree.svg
	$(BIN)/hierindex export svg --index hierindex-demo --to notebooks/tree.svg

docs: $(DOCUMENTABLE)  ## guides, notebooks and reference as pages to read offline; a broken link is an error
	$(BIN)/sphinx-build -M html notebooks site -qaE --fail-on-warning --keep-going
	@echo "Open site/html/index.html in a browser."

notebooks: $(TESTABLE)  ## runs notebooks in new kernels and stores what they show: make notebooks NAME=levels
	OMP_NUM_THREADS=1 $(BIN)/python tests/run_notebooks.py $(NAME)

test: $(TESTABLE)  ## everything that CI checks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(MAKE) -j 2 test-builds types test-core test-answers

types: $(TESTABLE)
	$(BIN)/mypy

test-core: $(TESTABLE)  ## on threads that do not spin while they wait
	OMP_WAIT_POLICY=passive $(BIN)/pytest --cov -q tests/core hierindex/core

test-answers: $(TESTABLE)
	OMP_NUM_THREADS=1 $(BIN)/pytest -q $(ANSWERS)

test-builds: $(TESTABLE)  ## and everything else
	OMP_NUM_THREADS=1 $(BIN)/pytest -q $(addprefix --ignore=,$(ANSWERS) tests/core hierindex/core)

test-browser: $(TESTABLE) $(DOCUMENTABLE)  ## the explorer's page and the site in a real Chromium; its pictures are left in SCREENSHOTS
	@$(BIN)/python -c 'import os, shutil, sys; sys.exit(not (os.environ.get("CHROMIUM") or any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))))' \
		|| { echo "Chromium is missing. On Debian: apt-get install chromium; or set CHROMIUM=path"; exit 2; }
	$(INSTALL) --group browser
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -m slow tests/browser

format: $(TESTABLE)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test-ray: $(TESTABLE)  ## builds on a Ray cluster of two nodes on this machine, which it installs
	$(INSTALL) -e '.[ray]'
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -m 'slow or not slow' tests/scale

verify-types: $(TESTABLE)  ## that the types of all public names are complete; test-suites does, too
	$(INSTALL) basedpyright
	PYTHONPATH=$(CURDIR) PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/basedpyright --ignoreexternal --verifytypes hierindex

test-package: $(TESTABLE)  ## the wheel in fresh environments, also of each Python from 3.11 to 3.13 that uv finds
	$(INSTALL) uv
	$(BIN)/pytest -q -m slow tests/test_package.py

test-slow: $(TESTABLE) $(DOCUMENTABLE)  ## every method on whole corpora, in HIERINDEX_CORPORA, and many examples of each property
	$(BIN)/pytest -q -n 2 -m 'slow or hypothesis' --hypothesis-profile=thorough

test-suites: $(TESTABLE) $(NPM)  ## other people's tests and programs; prints a table of what passes
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -rfEs tests/suites tests/store/test_conformance.py

test-llm: $(TESTABLE)  ## a real language model, which it downloads: 0.5 GB, or 1.1 GB with SIZE=1.5b
	$(INSTALL) --group real-model
	$(BIN)/python tests/benchmarks/real_model.py fetch $(or $(SIZE),0.5b)
	SIZE=$(or $(SIZE),0.5b) $(BIN)/pytest -q -m slow tests/llm

search: $(TESTABLE)  ## properties on other random examples each time; what it finds becomes a test
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -n 2 -m hypothesis --hypothesis-profile=search

bench: $(TESTABLE)  ## prints times and ratios: make bench CORPUS=folder
	@test -n "$(CORPUS)" || { echo "Name a folder of documents: make bench CORPUS=folder"; exit 2; }
	$(INSTALL) --group bench
	$(BIN)/python tests/benchmarks/build.py $(CORPUS)

bench-clustering: $(READY)  ## and how fast and how good clusters are: make bench-clustering CORPUS=folder DATA=folder
	@test -n "$(CORPUS)" -a -n "$(DATA)" || { echo "Name CORPUS=folder of documents and DATA=folder of evaluation data"; exit 2; }
	$(BIN)/python -m pip install -qq --no-deps llama-index-packs-raptor==0.4.2  # asks for an older numpy
	$(BIN)/python -W ignore tests/benchmarks/clustering.py $(CORPUS)
	$(BIN)/python -W ignore tests/benchmarks/clustering_quality.py $(DATA)

bench-extractive: $(READY)  ## and extracts, beside bert-extractive-summarizer: make bench-extractive DATA=folder
	@test -n "$(DATA)" || { echo "Name a folder of evaluation data: make bench-extractive DATA=folder"; exit 2; }
	$(INSTALL) -e '.[bert]' --group bench
	$(BIN)/python -W ignore tests/benchmarks/extractive.py $(DATA)

bench-llm: $(READY)  ## and estimates of a language model's calls, and checked sentences: make bench-llm CORPUS=folder DATA=folder
	@test -n "$(CORPUS)" -a -n "$(DATA)" || { echo "Name CORPUS=folder of documents and DATA=folder of evaluation data"; exit 2; }
	$(BIN)/python -W ignore tests/benchmarks/estimate.py $(CORPUS)
	$(BIN)/python -W ignore tests/benchmarks/grounding.py $(DATA) first
	$(BIN)/python -W ignore tests/benchmarks/grounding.py $(DATA) second

bench-seq2seq: $(READY)  ## and rewriting in batches, by a bart-large of random weights
	$(BIN)/python tests/benchmarks/seq2seq.py

bench-query: $(READY)  ## and questions at a million nodes, and what they find: make bench-query CORPUS=folder DATA=folder
	@test -n "$(CORPUS)" -a -n "$(DATA)" || { echo "Name CORPUS=folder of documents and DATA=folder of evaluation data"; exit 2; }
	$(INSTALL) --group bench
	$(BIN)/python -W ignore tests/benchmarks/query.py $(CORPUS)
	$(BIN)/python -W ignore tests/benchmarks/ways.py $(dir $(wildcard $(DATA)/*/questions.jsonl))

bench-responses: $(TESTABLE)  ## and answers in response modes, beside LlamaIndex's: make bench-responses CORPUS=folder
	@test -n "$(CORPUS)" || { echo "Name a folder of documents: make bench-responses CORPUS=folder"; exit 2; }
	$(BIN)/python -W ignore tests/benchmarks/responses.py $(CORPUS)

bench-ray: $(READY)  ## and builds by one worker and by two on a Ray cluster
	$(INSTALL) -e '.[ray]'
	$(BIN)/python -W ignore tests/benchmarks/ray_cluster.py workers
	$(BIN)/python -W ignore tests/benchmarks/ray_cluster.py pools

soak: $(TESTABLE)  ## kills writers at random moments, fills disks, sets clocks back
	$(BIN)/pytest -q -m 'slow or not slow' tests/test_faults.py tests/test_kills.py

$(READY): pyproject.toml $(wildcard constraints.txt)
	@echo "Installing hierindex and what it needs into .venv: 2.1 GB, which takes about a minute."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -qq --upgrade 'pip>=25.1'
	$(INSTALL) -e '.[serve]'
	touch $@

$(TESTABLE): $(READY)
	$(INSTALL) -e '.[bert,langchain,llm,multilingual,office,plot,serve]' --group dev
	touch $@

$(DOCUMENTABLE): $(READY)
	$(INSTALL) --group docs
	touch $@

$(NPM): tests/suites/package.json $(TESTABLE)
	$(INSTALL) --group suites
	PATH=$(CURDIR)/$(BIN):$$PATH npm install --prefix tests/suites --ignore-scripts --no-package-lock \
		--no-audit --no-fund --silent && touch $@ || echo "npm cannot install tests/suites/package.json; tests of these programs are skipped."
