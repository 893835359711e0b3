# `make` alone lists the targets. Everything is installed into .venv, on the first use and whenever the pins change.
# The system's own Python where it is new enough and makes environments: distributions build with a profile (PGO), others seldom do.
PYTHON ?= $(or $(shell /usr/bin/python3 -c 'import sys, ensurepip; print(sys.executable if sys.version_info >= (3, 11) else "")' 2>/dev/null),python3)
BIN := .venv/bin
# Where it is set, every process would compile all its modules anew, which is half of a worker's start.
unexport PYTHONDONTWRITEBYTECODE
ENGINES := --extra postgres --extra redis --extra kafka --extra cassandra --extra grpc --extra email --extra dashboard --extra templates --extra archive --extra otel
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-header --no-annotate --no-emit-index-url --no-emit-find-links

.DEFAULT_GOAL := help
.PHONY: help install run test check fmt bench load bench-peers interop fuzz simulate chaos campaign protos docs lock faults drill deploy-check deb packages mutate compiled wheel services services-down

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: ## make .venv hold what requirements/dev.txt pins (every other target does this first)
	@$(PYTHON) scripts/install.py

run: install ## start Waypost with its provider lab and send one notification to three devices (ONCE=1: then end)
	@$(BIN)/waypost demo $(if $(ONCE),--once)

test: ## install everything needed and run the whole test suite
	@$(PYTHON) -m scripts.test

check: install ## format, lint, types, import contracts, docs
	@$(BIN)/python scripts/check.py

fmt: install ## format the code and repair what the linter can
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format .

bench: install ## fill the one table of figures that are wanted, some 30 minutes (ONLY=sustained,intake for some; SECONDS=10 to hold the load for less than a minute)
	@$(BIN)/python -m benchmarks

load: install ## run the product under the loads that are asked of it, and print each against what is wanted (ONLY=sustained,users for some; SECONDS=60 for less than ten minutes; JSON=1)
	@$(BIN)/python -m benchmarks.load $(if $(JSON),--json)

bench-peers: install ## measure what other clients, and a Celery worker, need for the same work
	@ONLY=peers,more_peers,celery,drop_in $(BIN)/python -m benchmarks

interop: install ## send 100,000 requests to each of nine HTTP/2 servers and judge every answer
	@$(PYTHON) -m scripts.interop $(ARGS)

fuzz: install ## look for bytes that break the HTTP/2 reader and header decoder, or a door (SECONDS=60 each; SEED=… repeats the doors' mutants)
	@$(PYTHON) scripts/fuzz.py $(or $(SECONDS),60)
	@WAYPOST_FUZZ_SECONDS=$(or $(SECONDS),60) WAYPOST_FUZZ_SEED=$(or $(SEED),$(shell date +%s)) \
	    $(BIN)/python -m pytest -q tests/hostile/test_fuzz.py -o timeout=0

simulate: install ## live through 100,000 seeds of the whole pipeline on a clock of its own, on all cores (SEEDS=500 or 500:900 for others; SEED=… for one)
	@$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),100000))

chaos: install ## kill, freeze and poison workers under load, then all faults by a plan (KILLS=200 CALLERS=32 SECONDS=300; ONLY=chaos is the plan; SEED=… repeats its choices)
	@WAYPOST_CHAOS_KILLS=$(or $(KILLS),200) WAYPOST_CHAOS_CALLERS=$(or $(CALLERS),32) WAYPOST_CHAOS_SECONDS=$(or $(SECONDS),300) \
	    $(if $(SEED),WAYPOST_CHAOS_SEED=$(SEED)) \
	    $(BIN)/python -m pytest -q $(foreach name,$(or $(ONLY),kills frozen poison chaos),tests/journeys/test_$(name).py)

campaign: install ## run a campaign through kills and a pause, and account for every user (SIZE=200000; SEED=… repeats its choices)
	@WAYPOST_CAMPAIGN_SIZE=$(or $(SIZE),200000) $(if $(SEED),WAYPOST_CHAOS_SEED=$(SEED)) \
	    $(BIN)/python -m pytest -q -s tests/journeys/test_campaigns.py

faults: install ## kill, freeze, cut off and fill up servers, three of a kind too, and workers; print the table of what was survived
	@WAYPOST_CHAOS_KILLS=$(or $(KILLS),16) $(BIN)/python -m pytest -q -m "faults or survives or long" tests

drill: install ## cause the troubles of the runbook for real, and see that a real Prometheus raises each alert and that the page ends it (ONLY=provider_stopped for one)
	@$(BIN)/python -m pytest -q tests/journeys/test_drills.py tests/journeys/test_restore.py $(if $(ONLY),-k "test_$(ONLY)")

deploy-check: install ## render the Helm chart with Helm, judge it by Kubernetes's schemas and the stacks by Compose's reader (builds both with Go at first, some minutes)
	@$(BIN)/python -m scripts.deployment

deb: install ## build the Debian package into dist/, for the system's Python
	@$(BIN)/python -m scripts.debian

packages: install ## build the Debian package, install it into a system that is thrown away, and the wheel by pipx and uv (root, some minutes)
	@$(BIN)/python -m pytest -q tests/journeys/test_packages.py

mutate: install ## plant one fault after the other in a copy of the tree, and print how many the tests notice (ONLY=name for one, JSON=1)
	@$(BIN)/python -m scripts.mutate $(foreach name,$(ONLY),--only $(name)) $(if $(JSON),--json)

MATRICES := faults errors hostile interop kills lab judges
MATRIX_faults := tests/journeys/test_fault_matrix.py
MATRIX_errors := tests/unit/adapters tests/adapters/senders/test_fcm_topics.py
MATRIX_hostile := tests/adapters/http2/test_hostile_connections.py tests/adapters/http2/test_hostile_frames.py \
    tests/adapters/http2/test_hostile_server.py
MATRIX_interop := tests/adapters/http2/test_interop.py
MATRIX_kills := tests/contract/test_kills.py tests/journeys/test_kills.py
MATRIX_lab := tests/adapters/lab/test_check_all.py
MATRIX_judges := tests/adapters/senders/test_apns_judge.py tests/adapters/senders/test_fcm_judge.py \
    tests/adapters/senders/test_webpush_judge.py

matrices: install ## print the tables that tests fill (ONLY=faults, errors, hostile, interop, kills, lab or judges)
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile $(foreach name,$(or $(ONLY),$(MATRICES)),$(MATRIX_$(name)))

services: ## start PostgreSQL, Redis, Kafka and Cassandra on the loopback and print where (ONLY="redis kafka-three" for some)
	@$(PYTHON) -m scripts.services up $(ONLY)

services-down: ## end them, their data too
	@$(PYTHON) -m scripts.services down --wipe

protos: install ## generate the Python stub of the gRPC API from proto/ (a test holds it to be up to date)
	@$(BIN)/python -m scripts.protos

docs: install ## check the docs: links, and that nothing the code can say is left out
	@$(BIN)/python -m scripts.check_docs

lock: install ## pin the newest versions that fit, with hashes
	@$(LOCK) --upgrade pyproject.toml --output-file requirements/runtime.txt
	@$(LOCK) --upgrade pyproject.toml requirements/dev.in $(ENGINES) --constraint requirements/runtime.txt --output-file requirements/dev.txt
	@$(LOCK) --upgrade pyproject.toml $(ENGINES) --constraint requirements/dev.txt --output-file requirements/server.txt
	@$(LOCK) --upgrade requirements/build.in --constraint requirements/dev.txt --output-file requirements/build.txt
	@$(LOCK) --upgrade requirements/fuzz.in --output-file requirements/fuzz.txt
	@$(LOCK) --upgrade requirements/peers.in --output-file requirements/peers.txt

compiled: install ## build the wheel with the HTTP/2 kernel compiled into dist/, and hold it to all of the kernel's tests
	@$(BIN)/python -m scripts.compiled

wheel: install ## build the wheels of Waypost, of its client alone and of its lab, pure Python, into dist/
	@$(BIN)/python -m build --wheel --no-isolation --outdir dist .
	@$(BIN)/python -m build --wheel --no-isolation --outdir dist packaging/client
	@$(BIN)/python -m build --wheel --no-isolation --outdir dist packaging/lab
