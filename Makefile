# What a person types. `make` alone lists it.
#
# Everything heavy lies in target/; the virtual machines' kernels and images in
# target/lab, or where TIDEGATE_LAB_CACHE says.

KERNEL ?= 6.12
FUZZ_SECONDS ?= 600
CARGO ?= cargo

.DEFAULT_GOAL := help

##@ Try it
.PHONY: run
run: ## Build, boot a stock Debian kernel in a VM under this build, and play the story
	@scripts/run.sh --kernel $(KERNEL)

.PHONY: agent-host
agent-host: ## The same for a host of tools, one of them hostile, as capability files hold them (examples/agent-host)
	@scripts/setup.sh
	@scripts/agent-host.sh $(KERNEL)

##@ Check it
.PHONY: check
check: ## The everyday loop, under two minutes: lint, unit tests, one VM
	@scripts/xtask.sh test --set quick

.PHONY: test
test: ## What shows that each model holds, on 6.12 and 7.2; the last line counts
	@scripts/xtask.sh test

.PHONY: test-more
test-more: ## The rest, twice as long: commands, pages, the lab, AppArmor's own tests, all profiles that Debian ships, the other kernel
	@scripts/xtask.sh test --set more

.PHONY: fuzz
fuzz: ## Fuzz the map parser, the bundle loader and the decision core (FUZZ_SECONDS=600)
	@scripts/fuzz.sh $(FUZZ_SECONDS)

.PHONY: cost
cost: ## What each MAC costs, in instructions: measures, and writes a report with plots into target/cost, in short docs/dev/cost.md (three quarters of an hour on two cores)
	@scripts/cost.sh $(KERNEL)

.PHONY: days
days: ## The package's life, a server's and a workstation's day, power cuts and break-ins on a whole Debian in a VM (an hour)
	@scripts/xtask.sh test day-package day-server day-workstation day-power day-breakins

.PHONY: long
long: ## Long runs under load and faults: reloads, deaths, floods, no room, a soak (an hour; SOAK=30m makes the soak longer than 5m)
	@scripts/xtask.sh test $(addsuffix -$(KERNEL),long-reload long-kill long-flood long-overrun long-full \
		long-memory long-clock long-soak)

.PHONY: apparmor
apparmor: ## AppArmor's own tests whole: all cases that are generated, all regression tests (an hour; docs/dev/testing-apparmor.md)
	@CASES_EACH=1 REGRESSION=all scripts/xtask.sh test apparmor-cases apparmor-$(KERNEL)

.PHONY: selinux
selinux: ## Type enforcement on both kernels, and whole comparisons with SELinux (an hour and a half; docs/dev/testing-selinux.md)
	@scripts/xtask.sh test te-$(KERNEL) te-debian-6.12 te-enforced-$(KERNEL) te-live-7.2 te-system-$(KERNEL) te-system-debian-6.12 record-te-$(KERNEL)

.PHONY: caps
caps: ## Capability files on both kernels, where `make test` has one, and longer random sequences (half an hour; docs/dev/testing-capability.md)
	@CAPS_COUNT=30 scripts/xtask.sh test --minutes 100 caps-service-6.12 narrow-7.2 caps-models-7.2 agent-host-6.12 caps-random-7.2

##@ Build it
.PHONY: build
build: ## All crates, for development
	$(CARGO) build --workspace --locked

.PHONY: static
static: ## The programs as they are installed: static binaries
	@scripts/build.sh static

.PHONY: lab
lab: ## The program behind `tidegate lab` and `tidegate bench`, static too
	@scripts/build.sh lab

.PHONY: install
install: ## The libraries for C (libtidegate-avc, -restrict, -service, headers, pkg-config) into PREFIX=/usr below DESTDIR
	@scripts/build.sh install "$(DESTDIR)"

.PHONY: man
man: ## Manual pages and shell completions, into target/man and target/completions
	@scripts/build.sh man

.PHONY: docs
docs: ## The documentation as a site with search, manual, libraries and the report of cost, into target/site
	@python3 scripts/site.py

.PHONY: deb
deb: ## Debian packages, into target/package
	@packaging/build.sh deb

.PHONY: rpm
rpm: ## Packages for distributions with rpm, into target/package
	@packaging/build.sh rpm

.PHONY: setup
setup: ## Install what building and testing needs, from the distribution's packages
	@scripts/setup.sh

.PHONY: clean
clean: ## Remove what was built, but not the virtual machines' parts
	@scripts/build.sh clean

.PHONY: help
help: ## This list
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
