# Builds, starts and tests gpumon. `make help` lists the targets.

PYTHON ?= python3
ifeq ($(shell command -v $(PYTHON)),)
$(error $(PYTHON) is missing: install Python 3.11 or newer (on Debian: sudo apt-get install python3 python3-venv), then try again)
endif
STEP := $(PYTHON) tools/step.py
# JupyterLab with the wheel in it, for `make` and for the browser tests.
JUPYTER := target/jupyter
# The oldest JupyterLab that is supported, and what it runs on: in CI the oldest Python.
LAB40 := target/jupyter-lab40
LAB40_PYTHON ?= $(PYTHON)
# JupyterHub, with a JupyterLab for its users.
HUB := target/jupyter-hub
# JupyterLab with NVDashboard in it, beside which the front end is measured.
PEER := target/nvdashboard
# What builds releases, and their architectures.
DIST_TOOLS := target/dist-tools
ARCHITECTURES ?= x86_64 aarch64
# What reads the conda recipe.
CONDA := target/conda
# What tests the API against its description.
API := target/schemathesis
# Experiment trackers and training frameworks, with gpumon in them.
TRACKERS := target/trackers
# The address of the project, empty while it has none.
REPOSITORY := $(shell sed -n 's/^repository = "\(.*\)"$$/\1/p' Cargo.toml)
# How long each target is fuzzed.
FUZZ_SECONDS ?= 600
# The profile of the program in JupyterLab: `dev` is built quickly, `release` is what is released.
PROFILE ?= dev

# Incremental compilation makes the first build a third slower, and takes a third of the disk.
export CARGO_INCREMENTAL ?= 0
check: export CARGO_INCREMENTAL = 1

# What tools/need.py installs where the machine lacks it.
export PATH := $(CURDIR)/target/tools/bin:$(PATH)

MANIFESTS := package.json package-lock.json .npmrc $(wildcard static/package.json labextension/package.json tests/browser/package.json)
FRONTEND := $(shell find static labextension -type f ! -name '*.test.ts' ! -path '*/node_modules/*' ! -path '*/dist/*')
PROGRAM := Cargo.toml Cargo.lock .cargo/config.toml $(shell find probe history recording fleet smi workload alerts server cli -type f ! -path '*/tests/*')
PACKAGE := pyproject.toml README.md LICENSE THIRD-PARTY-LICENSES.txt $(shell find python -type f ! -path '*/__pycache__/*' ! -name README.md)

EXTENSION := wheel/data/share/jupyter/labextensions/gpumon/install.json
MODULES := node_modules/.package-lock.json
WHEEL := target/wheels/$(PROFILE)/.built
INSTALLED := .installed-$(PROFILE)

.DEFAULT_GOAL := lab
.DELETE_ON_ERROR:
# Independent steps run at the same time: some wait for the network while others compile.
MAKEFLAGS += --jobs=4
.PHONY: audit check dist licenses bench bench-front-end fuzz fake-library hub lab lab40 rust rust-components uv libraries program wheel frontend test test-needs test-rust test-web test-python test-api test-browser test-firefox test-lab40 test-hub test-trackers browser-needs deploy-needs screenshots test-full test-aarch64 test-packages types docs fmt clean help

lab: $(JUPYTER)/$(INSTALLED) ## build everything and start JupyterLab with the panel open (the default)
	@exec $(PYTHON) tools/lab.py $(JUPYTER)

wheel: ## build the wheel as it is released, into target/wheels/release
	@$(MAKE) --no-print-directory PROFILE=release target/wheels/release/.built
dist: $(EXTENSION) $(DIST_TOOLS)/.made rust ## build what is released, for both architectures, into dist
	@$(PYTHON) tools/need.py cargo-deb
	@rustup target add $(addsuffix -unknown-linux-gnu,$(ARCHITECTURES))
	@$(PYTHON) tools/dist.py $(ARCHITECTURES)
licenses: rust ## collect the licenses of the libraries in the program, after a change of Cargo.lock
	@$(PYTHON) tools/need.py cargo-about
	@$(STEP) "licenses" cargo about generate --locked --fail --config tools/licenses/about.toml \
		--output-file THIRD-PARTY-LICENSES.txt tools/licenses/about.hbs

frontend: $(EXTENSION) ## build the page and the JupyterLab extension

test: $(EXTENSION) uv $(if $(wildcard static/dist/index.html),rust-components,libraries) ## run every check and test
	@$(PYTHON) tools/test.py

# Builds everything that the tests run.
test-needs: fake-library $(JUPYTER)/$(INSTALLED) browser-needs $(API)/.made lab40 hub deploy-needs
	@$(PYTHON) tools/need.py sshd

# Clippy is the compiler of everything that tests run, so that one build serves both.
test test-full test-needs test-rust test-web test-python test-api test-browser test-firefox test-lab40 test-hub test-trackers: \
	export RUSTC_WORKSPACE_WRAPPER = clippy-driver

test-full: export GPUMON_TEST_FULL = 1
test-full: test test-aarch64 ## the same, with each return code of each function through processes, and on ARM
test-aarch64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER = aarch64-linux-gnu-gcc
# Where QEMU finds the loader and the libraries of ARM programs.
test-aarch64: export QEMU_LD_PREFIX = /usr/aarch64-linux-gnu
test-aarch64: rust ## the tests of Rust on ARM, by QEMU
	@$(PYTHON) tools/need.py aarch64
	@$(PYTHON) tools/test.py aarch64

check: rust-components $(MODULES) ## check format, types, lints and unit tests of what has changed since the last commit
	@$(PYTHON) tools/check.py

test-rust: fake-library ## format, clippy and tests of the Rust crates
	@$(PYTHON) tools/need.py promtool sshd
	@$(PYTHON) tools/test.py format rust alone
test-web: $(MODULES) ## types, style and tests of the page and the extension
	@$(PYTHON) tools/test.py web
test-python: $(JUPYTER)/$(INSTALLED) $(MODULES) fake-library ## tests of the wheel's Python
	@$(PYTHON) tools/need.py promtool
	@$(PYTHON) tools/test.py python
test-api: $(API)/.made fake-library ## the API against its description, with valid and invalid requests
	@$(PYTHON) tools/test.py api
test-browser: $(JUPYTER)/$(INSTALLED) browser-needs ## the wheel in JupyterLab and Notebook, and the page, in Chromium
	@$(PYTHON) tools/test.py browser
test-firefox: $(JUPYTER)/$(INSTALLED) browser-needs ## the page in Firefox
	@$(PYTHON) tools/test.py firefox
test-lab40: lab40 browser-needs ## the panel in the oldest supported JupyterLab
	@$(PYTHON) tools/test.py lab40

test-hub: hub browser-needs ## the panel of two users behind JupyterHub
	@$(PYTHON) tools/test.py hub

test-trackers: $(TRACKERS)/$(INSTALLED) ## what PyTorch Lightning, Hugging Face, Keras, MLflow, W&B and TensorBoard get (installs 7 GB)
	@$(PYTHON) tools/test.py trackers

lab40: $(LAB40)/$(INSTALLED)
hub: $(HUB)/$(INSTALLED)

screenshots: $(JUPYTER)/$(INSTALLED) browser-needs ## take the pictures of docs/images anew, of simulated GPUs
	@$(STEP) "screenshots" npm run screenshots --workspace tests/browser

bench: rust ## measure what gpumon costs, over the fake library, beside peers that are installed
	@$(STEP) "release build" cargo build --locked --release --package gpumon --package fake-nvml --package gpumon-load
	@$(PYTHON) tests/bench/run.py; code=$$?; $(MAKE) --no-print-directory PROFILE=release bench-front-end && exit $$code

bench-front-end: $(JUPYTER)/$(INSTALLED) $(PEER)/.made $(MODULES) ## of that, what it costs the browser and Jupyter, beside NVDashboard
	@$(PYTHON) tools/need.py chromium
	@$(STEP) "fake NVML library, release" cargo build --locked --release --package fake-nvml
	@npm run --silent bench --workspace tests/browser

fuzz: rust ## fuzz the readers of untrusted input, FUZZ_SECONDS for each target
	@$(PYTHON) tools/fuzz.py --seconds $(FUZZ_SECONDS)

test-packages: fake-library $(CONDA)/.made ## test what `make dist` has built, in fresh systems and as image, recipe and source (needs root)
	@$(PYTHON) tools/need.py packages
	@$(STEP) "lintian" lintian --fail-on error,warning dist/gpumon_*_amd64.deb dist/gpumon_*_arm64.deb
	@$(PYTHON) tests/packages/run.py
	@$(PYTHON) tests/packages/service.py
	@$(PYTHON) tests/packages/image.py
	@$(CONDA)/bin/python tests/packages/conda.py
	@$(CONDA)/bin/python tests/packages/sdist.py

audit: rust $(MODULES) ## check dependencies and workflows: licenses, advisories, duplicates, sources, permissions
	@$(PYTHON) tools/need.py cargo-deny zizmor
	@$(STEP) "workflows" zizmor --no-progress --persona=pedantic .github
	@$(STEP) "crates: licenses, duplicates, sources" cargo deny check licenses bans sources
	@$(STEP) "crates: advisories" cargo deny check advisories
	@$(STEP) "npm packages: advisories" npm audit

types: rust ## generate the TypeScript types, the reference pages of the documentation, rules and dashboards
	GPUMON_UPDATE_TYPES=1 cargo test --package gpumon-server --test wire_types
	GPUMON_UPDATE_TYPES=1 cargo test --package gpumon --package gpumon-probe --package gpumon-workload --package gpumon-fleet --package gpumon-history --package gpumon-server --package gpumon-cli --lib --tests reference
	cargo build --package gpumon
	$(PYTHON) deploy/prometheus/generate.py target/debug/gpumon
	$(PYTHON) deploy/grafana/generate.py

docs: rust ## build the documentation as a site, into target/book, and check its links
	@$(PYTHON) tools/need.py mdbook
	@$(STEP) "documentation" env $(if $(REPOSITORY),MDBOOK_OUTPUT__HTML__GIT_REPOSITORY_URL=$(REPOSITORY)) mdbook build docs
	@$(PYTHON) tools/links.py target/book
	@echo "the documentation is at target/book/index.html"

fmt: $(MODULES) ## format Rust and TypeScript
	cargo fmt --all
	npm run format

clean: ## remove whatever was built
	rm -rf target dist wheel static/dist labextension/dist node_modules tests/fuzz/target python/build_backend/README.md

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "make %-15s %s\n", $$1, $$2 }'

# Beside what the recipes of these install: programs that check deploy/, and R for an example of the documentation.
test-python: deploy-needs
deploy-needs:
	@$(PYTHON) tools/need.py promtool shellcheck r

browser-needs: $(MODULES) fake-library
	@$(PYTHON) tools/need.py chromium firefox

rust:
	@$(PYTHON) tools/need.py compiler rust

# Built with the program, so that they share their dependencies.
fake-library: program
	@$(STEP) "fake drivers" cargo build --locked --package gpumon --package fake-nvml --package fake-cuda

uv:
	@$(PYTHON) tools/need.py uv

rust-components: rust
	@$(PYTHON) tools/need.py rust-components

# In a fresh clone, this compiles while npm installs packages. The build script of the server, which contains the page,
# fails until the page is built; all other crates are compiled.
libraries: rust $(if $(filter test%,$(MAKECMDGOALS)),rust-components)
	@$(STEP) "Rust libraries" sh -c 'GPUMON_PAGE_FOLLOWS=1 cargo $(if $(filter test%,$(MAKECMDGOALS)),build-all-tests, \
		build --locked --keep-going --profile $(PROFILE) --package gpumon --bin gpumon) || true'

# The program has the page in it. Tests are built together with it: an error in one is reported by the Rust tests.
program: rust $(EXTENSION) $(if $(wildcard static/dist/index.html)$(filter test-needs,$(MAKECMDGOALS)),,libraries)
	$(if $(filter test-needs,$(MAKECMDGOALS)),-@$(STEP) "Rust tests are built" cargo build-all-tests)
	@$(STEP) "gpumon" cargo build --locked --profile $(PROFILE) --package gpumon --bin gpumon

$(MODULES): $(MANIFESTS)
	@$(PYTHON) tools/need.py node
	@$(STEP) "npm packages" npm ci
	@touch $@

$(EXTENSION): $(MANIFESTS) $(FRONTEND) pyproject.toml | $(MODULES)
	@$(STEP) "page and JupyterLab extension" $(PYTHON) python/build_backend/gpumon_frontend.py

$(JUPYTER)/.made: tests/browser/requirements.txt tests/python/requirements.txt | uv
	@$(STEP) "JupyterLab in $(JUPYTER)" $(PYTHON) tools/venv.py $(JUPYTER) $^
	@touch $@

$(DIST_TOOLS)/.made: tools/dist-requirements.txt | uv
	@$(STEP) "what releases are built with" $(PYTHON) tools/venv.py $(DIST_TOOLS) $<
	@touch $@

$(PEER)/.made: tests/bench/front-end/requirements.txt | uv
	@$(STEP) "NVDashboard in $(PEER)" $(PYTHON) tools/venv.py $(PEER) $<
	@touch $@

$(API)/.made: tests/api/requirements.txt | uv
	@$(STEP) "schemathesis in $(API)" $(PYTHON) tools/venv.py $(API) $<
	@touch $@

$(TRACKERS)/.made: tests/trackers/requirements.txt | uv
	@$(STEP) "experiment trackers in $(TRACKERS) (takes minutes)" $(PYTHON) tools/venv.py $(TRACKERS) $<
	@touch $@

$(CONDA)/.made: tests/packages/requirements.txt | uv
	@$(STEP) "rattler-build in $(CONDA)" $(PYTHON) tools/venv.py $(CONDA) $<
	@touch $@

$(LAB40)/.made: tests/browser/requirements-lab40.txt | uv
	@$(STEP) "JupyterLab 4.0 in $(LAB40)" $(LAB40_PYTHON) tools/venv.py $(LAB40) $<
	@touch $@

$(HUB)/.made: tests/browser/requirements-hub.txt | uv
	@$(STEP) "JupyterHub in $(HUB)" $(PYTHON) tools/venv.py $(HUB) $<
	@touch $@

$(WHEEL): $(EXTENSION) $(PROGRAM) $(PACKAGE) | $(JUPYTER)/.made program
	@rm -f $(@D)/*.whl
	@$(STEP) "wheel" env GPUMON_PROFILE=$(PROFILE) \
		$(PYTHON) tools/uv.py build --wheel --python $(JUPYTER) --out-dir $(@D)
	@touch $@

%/$(INSTALLED): $(WHEEL) %/.made
	@rm -f $*/.installed-*
	@$(STEP) "wheel into $*" $(PYTHON) tools/install_wheel.py $* $(dir $(WHEEL))
	@touch $@
