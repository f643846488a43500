# Builds, starts and tests gpumon. `make help` lists the targets.

PYTHON ?= python3
ifeq ($(shell command -v $(PYTHON)),)
$(error $(PYTHON) is missing: install Python 3.11 or newer (on Debian: sudo apt-get install python3 python3-venv), then try again)
endif
STEP := $(PYTHON) tools/step.py
# The environment with JupyterLab and the wheel, for `make` and for the browser tests.
JUPYTER := target/jupyter
# The oldest supported JupyterLab, and its Python: in CI, the oldest supported one.
LAB40 := target/jupyter-lab40
LAB40_PYTHON ?= $(PYTHON)
# JupyterHub, with a JupyterLab for its users.
HUB := target/jupyter-hub
# JupyterLab with NVDashboard, with which the front end is compared.
PEER := target/nvdashboard
# The tools that build releases, and the architectures of the releases.
DIST_TOOLS := target/dist-tools
ARCHITECTURES ?= x86_64 aarch64
# The program that builds the conda recipe.
CONDA := target/conda
# The program that tests the API against its OpenAPI document.
API := target/schemathesis
# The environment with experiment trackers, training frameworks and gpumon.
TRACKERS := target/trackers
# The address of the project. It is empty as long as the project has no address.
REPOSITORY := $(shell sed -n 's/^repository = "\(.*\)"$$/\1/p' Cargo.toml)
# The fuzzing time of each target, in seconds.
FUZZ_SECONDS ?= 600
# The Cargo profile of the program in JupyterLab. `dev` compiles faster; releases use `release`.
PROFILE ?= dev

# Incremental compilation makes the first build a third slower, and its data is a third of all
# build output.
export CARGO_INCREMENTAL ?= 0
check: export CARGO_INCREMENTAL = 1

# tools/need.py installs programs here that the machine lacks.
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
# Independent steps run at the same time, because some wait for the network while others compile.
MAKEFLAGS += --jobs=4
.PHONY: audit check dist licenses bench bench-front-end function-order fuzz fake-library hub lab lab40 rust rust-components uv libraries program wheel frontend test test-needs test-rust test-web test-python test-api test-browser test-firefox test-lab40 test-hub test-trackers browser-needs deploy-needs screenshots test-full test-aarch64 test-packages types docs fmt clean help

lab: $(JUPYTER)/$(INSTALLED) ## build everything and start JupyterLab with the panel open (the default)
	@exec $(PYTHON) tools/lab.py $(JUPYTER)

wheel: ## build the release wheel into target/wheels/release
	@$(MAKE) --no-print-directory PROFILE=release target/wheels/release/.built
dist: $(EXTENSION) $(DIST_TOOLS)/.made rust ## build all files of a release into dist, for both architectures
	@$(PYTHON) tools/need.py cargo-deb
	@rustup target add $(addsuffix -unknown-linux-gnu,$(ARCHITECTURES))
	@$(PYTHON) tools/dist.py $(ARCHITECTURES)
licenses: rust ## collect the licenses of the linked libraries, after a change of Cargo.lock
	@$(PYTHON) tools/need.py cargo-about
	@$(STEP) "licenses" cargo about generate --locked --fail --config tools/licenses/about.toml \
		--output-file THIRD-PARTY-LICENSES.txt tools/licenses/about.hbs

frontend: $(EXTENSION) ## build the page and the JupyterLab extension

test: $(EXTENSION) uv $(if $(wildcard static/dist/index.html),rust-components,libraries) ## run every check and test
	@$(PYTHON) tools/test.py

# Builds all programs that the tests run.
test-needs: fake-library $(JUPYTER)/$(INSTALLED) browser-needs $(API)/.made lab40 hub deploy-needs
	@$(PYTHON) tools/need.py sshd

# Clippy compiles the programs for the tests, so that lints and tests share one build.
test test-full test-needs test-rust test-web test-python test-api test-browser test-firefox test-lab40 test-hub test-trackers: \
	export RUSTC_WORKSPACE_WRAPPER = clippy-driver

test-full: export GPUMON_TEST_FULL = 1
test-full: test test-aarch64 ## run all tests, also every combination of driver faults, and the tests on ARM
test-aarch64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER = aarch64-linux-gnu-gcc
# QEMU finds the loader and the libraries of ARM programs here.
test-aarch64: export QEMU_LD_PREFIX = /usr/aarch64-linux-gnu
test-aarch64: rust ## run the Rust tests on ARM, under QEMU
	@$(PYTHON) tools/need.py aarch64
	@$(PYTHON) tools/test.py aarch64

check: rust-components $(MODULES) ## check format, types, lints and unit tests of all changes since the last commit
	@$(PYTHON) tools/check.py

test-rust: fake-library ## check format and lints of the Rust crates, and run their tests
	@$(PYTHON) tools/need.py promtool sshd
	@$(PYTHON) tools/test.py format rust alone
test-web: $(MODULES) ## check types and style of the page and the extension, and run their tests
	@$(PYTHON) tools/test.py web
test-python: $(JUPYTER)/$(INSTALLED) $(MODULES) fake-library ## test the Python package
	@$(PYTHON) tools/need.py promtool
	@$(PYTHON) tools/test.py python
test-api: $(API)/.made fake-library ## test the API against its OpenAPI document, with valid and invalid requests
	@$(PYTHON) tools/test.py api
test-browser: $(JUPYTER)/$(INSTALLED) browser-needs ## test JupyterLab, Notebook and the page in Chromium
	@$(PYTHON) tools/test.py browser
test-firefox: $(JUPYTER)/$(INSTALLED) browser-needs ## test the page in Firefox
	@$(PYTHON) tools/test.py firefox
test-lab40: lab40 browser-needs ## test the panel in the oldest supported JupyterLab
	@$(PYTHON) tools/test.py lab40

test-hub: hub browser-needs ## test the panels of two users of a JupyterHub
	@$(PYTHON) tools/test.py hub

test-trackers: $(TRACKERS)/$(INSTALLED) ## test gpumon.trackers with the real libraries (installs 7 GB)
	@$(PYTHON) tools/test.py trackers

lab40: $(LAB40)/$(INSTALLED)
hub: $(HUB)/$(INSTALLED)

screenshots: $(JUPYTER)/$(INSTALLED) browser-needs ## take the screenshots of docs/images again, with simulated GPUs
	@$(STEP) "screenshots" npm run screenshots --workspace tests/browser

bench: rust ## measure the cost of gpumon with the fake NVML library, compared with other installed tools
	@$(STEP) "release build" cargo build --locked --release --package gpumon --package fake-nvml --package gpumon-load
	@$(PYTHON) tests/bench/run.py; code=$$?; $(MAKE) --no-print-directory PROFILE=release bench-front-end && exit $$code

function-order: rust ## list the functions that the server calls, for the order of code in release builds (needs gdb)
	@$(STEP) "fake NVML library, release" cargo build --locked --release --package fake-nvml
	@$(PYTHON) tests/bench/function_order.py

bench-front-end: $(JUPYTER)/$(INSTALLED) $(PEER)/.made $(MODULES) ## measure the cost in the browser and in Jupyter, compared with NVDashboard
	@$(PYTHON) tools/need.py chromium
	@$(STEP) "fake NVML library, release" cargo build --locked --release --package fake-nvml
	@npm run --silent bench --workspace tests/browser

fuzz: rust ## fuzz the parsers of untrusted input, each for FUZZ_SECONDS
	@$(PYTHON) tools/fuzz.py --seconds $(FUZZ_SECONDS)

test-packages: fake-library $(CONDA)/.made ## test the files of `make dist` in fresh systems, and the image, recipe and source (needs root)
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

types: rust ## generate the TypeScript types, reference pages, alert rules and dashboards
	GPUMON_UPDATE_TYPES=1 cargo test --package gpumon-server --test wire_types
	GPUMON_UPDATE_TYPES=1 cargo test --package gpumon --package gpumon-probe --package gpumon-workload --package gpumon-fleet --package gpumon-history --package gpumon-server --package gpumon-cli --lib --tests reference
	cargo build --package gpumon
	$(PYTHON) deploy/prometheus/generate.py target/debug/gpumon
	$(PYTHON) deploy/grafana/generate.py

docs: rust ## build the documentation site into target/book, and check its links
	@$(PYTHON) tools/need.py mdbook
	@$(STEP) "documentation" env $(if $(REPOSITORY),MDBOOK_OUTPUT__HTML__GIT_REPOSITORY_URL=$(REPOSITORY)) mdbook build docs
	@$(PYTHON) tools/links.py target/book
	@echo "the documentation is at target/book/index.html"

fmt: $(MODULES) ## format Rust and TypeScript
	cargo fmt --all
	npm run format

clean: ## remove all build output
	rm -rf target dist wheel static/dist labextension/dist node_modules tests/fuzz/target python/build_backend/README.md

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "make %-15s %s\n", $$1, $$2 }'

# The Python tests also need the programs that check deploy/, and R for an example of the
# documentation.
test-python: deploy-needs
deploy-needs:
	@$(PYTHON) tools/need.py promtool shellcheck r

browser-needs: $(MODULES) fake-library
	@$(PYTHON) tools/need.py chromium firefox

rust:
	@$(PYTHON) tools/need.py compiler rust

# The fake drivers are built together with the program, so that they share its dependencies.
fake-library: program
	@$(STEP) "fake drivers" cargo build --locked --package gpumon --package fake-nvml --package fake-cuda

uv:
	@$(PYTHON) tools/need.py uv

rust-components: rust
	@$(PYTHON) tools/need.py rust-components

# In a fresh clone, the libraries are compiled while npm installs packages. The build script of the
# server needs the page, so it fails until the page is built. All other crates are compiled.
libraries: rust $(if $(filter test%,$(MAKECMDGOALS)),rust-components)
	@$(STEP) "Rust libraries" sh -c 'GPUMON_PAGE_FOLLOWS=1 cargo $(if $(filter test%,$(MAKECMDGOALS)),build-all-tests, \
		build --locked --keep-going --profile $(PROFILE) --package gpumon --bin gpumon) || true'

# The program contains the page. Tests are built together with the program. Compile errors in tests
# are ignored here, because the Rust tests report them.
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
	@$(STEP) "JupyterLab in $(JUPYTER)" $(PYTHON) tools/uv.py environment $(JUPYTER) $^
	@touch $@

$(DIST_TOOLS)/.made: tools/dist-requirements.txt | uv
	@$(STEP) "release build tools" $(PYTHON) tools/uv.py environment $(DIST_TOOLS) $<
	@touch $@

$(PEER)/.made: tests/bench/front-end/requirements.txt | uv
	@$(STEP) "NVDashboard in $(PEER)" $(PYTHON) tools/uv.py environment $(PEER) $<
	@touch $@

$(API)/.made: tests/api/requirements.txt | uv
	@$(STEP) "schemathesis in $(API)" $(PYTHON) tools/uv.py environment $(API) $<
	@touch $@

$(TRACKERS)/.made: tests/trackers/requirements.txt | uv
	@$(STEP) "experiment trackers in $(TRACKERS) (takes minutes)" $(PYTHON) tools/uv.py environment $(TRACKERS) $<
	@touch $@

$(CONDA)/.made: tests/packages/requirements.txt | uv
	@$(STEP) "rattler-build in $(CONDA)" $(PYTHON) tools/uv.py environment $(CONDA) $<
	@touch $@

$(LAB40)/.made: tests/browser/requirements-lab40.txt | uv
	@$(STEP) "JupyterLab 4.0 in $(LAB40)" $(LAB40_PYTHON) tools/uv.py environment $(LAB40) $<
	@touch $@

$(HUB)/.made: tests/browser/requirements-hub.txt | uv
	@$(STEP) "JupyterHub in $(HUB)" $(PYTHON) tools/uv.py environment $(HUB) $<
	@touch $@

$(WHEEL): $(EXTENSION) $(PROGRAM) $(PACKAGE) | $(JUPYTER)/.made program
	@rm -f $(@D)/*.whl
	@$(STEP) "wheel" env GPUMON_PROFILE=$(PROFILE) \
		$(PYTHON) tools/uv.py build-wheel $(JUPYTER) $(@D)
	@touch $@

%/$(INSTALLED): $(WHEEL) %/.made
	@rm -f $*/.installed-*
	@$(STEP) "wheel into $*" $(PYTHON) tools/uv.py install-wheel $* $(dir $(WHEEL))
	@touch $@
