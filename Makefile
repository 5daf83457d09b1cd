# make run    sets up a fresh Debian- or Fedora-like machine and shows the daemon on a simulated node
# make test   sets up and runs the tests
# The rest: vm-test, bench, deb, rpm, lint, install DESTDIR=

CARGO ?= cargo
TARGET ?= $(or $(CARGO_TARGET_DIR),target)
SCENARIO ?= tests/scenarios/healthy.toml
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

DESTDIR ?=
UNITDIR ?= /usr/lib/systemd/system
PRESETDIR = /usr/lib/systemd/system-preset
CATALOGDIR = /usr/lib/systemd/catalog
DBUSDIR = /usr/share/dbus-1
DOCDIR ?= /usr/share/doc/peermemd
# $(call install_all,DIRECTORY,FILES); nothing if there are none.
install_all = $(if $(strip $(2)),install -D -m 0644 -t $(DESTDIR)$(1) $(2))

export TARGET VERSION

.PHONY: run test vm-test bench deb rpm lint install install-files release

run:
	scripts/setup run
	$(CARGO) build --locked
	scripts/demo $(SCENARIO)

test:
	scripts/setup test
	$(CARGO) test --locked

vm-test: deb
	tests/vm/setup
	tests/vm/run --deb "$$(scripts/package-path deb)"
	$(CARGO) test --locked --test debian_modules -- --ignored

bench: deb
	scripts/setup test
	$(CARGO) bench --locked
	tests/vm/setup
	tests/vm/run --group bench --deb "$$(scripts/package-path deb)"

lint:
	scripts/setup lint
	scripts/lint

release:
	$(CARGO) build --release --locked

deb:
	scripts/setup deb
	$(MAKE) release
	scripts/deb

rpm:
	scripts/setup rpm
	$(MAKE) release
	scripts/rpm

install: release install-files

# The one list of installed files; both kinds of package are made from it. It builds nothing, so
# that packaging neither compiles nor needs a network.
install-files:
	install -D -m 0755 -t $(DESTDIR)/usr/sbin $(TARGET)/release/peermemd
	install -D -m 0755 -t $(DESTDIR)/usr/bin $(TARGET)/release/peermemctl
	install -D -m 0755 -t $(DESTDIR)/usr/lib/peermemd packaging/hooks/kernel-check
	$(call install_all,$(UNITDIR),$(wildcard systemd/*.service systemd/*.target))
	$(call install_all,$(PRESETDIR),$(wildcard systemd/*.preset))
	$(call install_all,$(CATALOGDIR),$(wildcard packaging/catalog/*.catalog))
	$(call install_all,$(DBUSDIR)/system.d,$(wildcard packaging/dbus/*.conf))
	$(call install_all,$(DBUSDIR)/interfaces,$(wildcard packaging/dbus/interfaces/*.xml))
	$(call install_all,$(DOCDIR),$(wildcard README.md docs/*.md))
	$(call install_all,$(DOCDIR)/examples,$(wildcard packaging/examples/*))
