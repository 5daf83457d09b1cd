# Helpers for the cases. Sourced by guest/script, with set -euo pipefail.

BUS=org.peermemd1
ROOT=/org/peermemd1
CLIENT_FILE=nvidia-peermem.ko
TEST=/sys/module/peermem_test/parameters

# --- judging -------------------------------------------------------------------------------------

fail() {
	echo "FAIL: $*"
	exit 1
}

note() { echo "-- $*"; }

is() { # WHAT GOT WANTED
	[ "$2" = "$3" ] || fail "$1: got '$2', wanted '$3'"
}

matches() { # WHAT TEXT REGEX
	[[ $2 =~ $3 ]] || fail "$1: '$2' does not match '$3'"
}

fails_with() { # REGEX COMMAND…: the command must fail and say so
	local wanted=$1 text
	shift
	if text=$("$@" 2>&1); then fail "$*: succeeded, wanted '$wanted'"; fi
	matches "$*" "$text" "$wanted"
}

eventually() { # SECONDS COMMAND…
	local until=$((SECONDS + $1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$until" ] || fail "not within time: $*"
		sleep 0.2
	done
}

stays() { # SECONDS COMMAND…: true now and until then
	local until=$((SECONDS + $1))
	shift
	while [ "$SECONDS" -lt "$until" ]; do
		"$@" || fail "did not stay so: $*"
		sleep 0.3
	done
}

# --- kernel --------------------------------------------------------------------------------------

live() { [ "$(cat "/sys/module/$1/initstate" 2>/dev/null)" = live ]; }
absent() { [ ! -d "/sys/module/$1" ]; }
refcnt() { cat "/sys/module/$1/refcnt"; }
holders() { ls "/sys/module/$1/holders"; }
bound() { [ -e "/sys/bus/pci/devices/$1/driver" ]; }
peers() { ls /sys/kernel/mm/memory_peers 2>/dev/null || true; }
listed() { [ -d /sys/kernel/mm/memory_peers/nv_mem ]; }
peer() { cat "/sys/kernel/mm/memory_peers/nv_mem/$1"; }

# Kernel log lines that match; several cases look only at what came after mark_log.
LOG_MARK=0
mark_log() { LOG_MARK=$(dmesg | wc -l); }
# (not grep -q: it would end before dmesg does, and pipefail calls that a failure)
logged() { dmesg | tail -n +$((LOG_MARK + 1)) | grep -E -- "$1" >/dev/null; }

# The stand-ins' own log, "MODULE EVENT" a line: how often something was really tried.
module_log() { cut -d' ' -f2,3 "$TEST/log"; }
tried() { module_log | grep -c "^$1 init$" || true; }
removed() { module_log | grep -c "^$1 exit$" || true; }

# --- knobs ---------------------------------------------------------------------------------------

fault() { echo "$1:$2:$3:$4" >"$TEST/faults"; } # MODULE ERRNO COUNT DELAY_MS
clear_faults() { echo clear >"$TEST/faults"; }

provider() { # the module that has the peer-memory interface
	local module
	for module in ib_core ib_uverbs; do
		[ -e "/sys/module/$module/parameters/test_pins" ] && echo "$module" && return
	done
	fail "no loaded module has the peer-memory interface"
}
pin() { echo "$1:$2" >"/sys/module/$(provider)/parameters/test_pins"; } # CLIENT COUNT
unpin() { pin "$1" 0; }
unlisted() { echo "$1" >"/sys/module/$(provider)/parameters/test_unlisted"; } # next N registrations

gpus() { echo "$1" >/sys/module/fakepci/parameters/gpus; }
nics() { echo "$1" >/sys/module/fakepci/parameters/nics; }

use_client() { # VARIANT: replace the client's file by another build and index the tree again
	cp "/lib/modules/variants/$1/$CLIENT_FILE" "/lib/modules/$(uname -r)/updates/$CLIENT_FILE"
	depmod
}

# --- daemon --------------------------------------------------------------------------------------

property() { # NAME [OBJECT INTERFACE]: the bare value of a property, strings without quotes
	busctl get-property "$BUS" "${2:-$ROOT}" "${3:-$BUS.Manager}" "$1" | sed -E 's/^[^ ]+ //; s/^"(.*)"$/\1/'
}
module_property() { property "$2" "$ROOT/module/$1" "$BUS.Module"; } # MODULE NAME
call() { busctl call "$BUS" "$ROOT" "$BUS.Manager" "$@"; }
state() { property State; }
reason() { property Reason; }

in_state() { # STATE [REASON]
	local now
	now=$(state 2>/dev/null) || return 1
	[ "$now" = "$1" ] || return 1
	[ -z "${2:-}" ] || [ "$(reason 2>/dev/null)" = "$2" ]
}

wait_state() { # STATE [REASON] [SECONDS]
	local until=$((SECONDS + ${3:-40}))
	until in_state "$1" "${2:-}"; do
		if [ "$SECONDS" -ge "$until" ]; then
			show_daemon
			fail "wanted $1 ${2:-}, is $(state) $(reason): $(property StatusText)" 2>/dev/null
		fi
		sleep 0.2
	done
}

# Reason after the daemon had every chance to do something about it.
settled_in() { # STATE REASON [SECONDS]
	wait_state "$1" "$2"
	stays "${3:-5}" in_state "$1" "$2"
}

show_daemon() {
	systemctl status --no-pager --full peermemd.service || true
	busctl --no-pager introspect "$BUS" "$ROOT" "$BUS.Manager" || true
}

evidence() { # ID: yes, no, unknown or not-applicable
	busctl --json=short get-property "$BUS" "$ROOT" "$BUS.Manager" Evidence |
		grep -o "\[\"$1\",\"[^\"]*\"" | cut -d'"' -f4
}

history() { call GetHistory u 0; }
daemon_pid() { systemctl show --property=MainPID --value peermemd.service; }
active() { [ "$(systemctl is-active "$1")" = active ]; }
is_inactive() { [ "$(systemctl is-active "$1")" = inactive ]; }
daemon_log() { journalctl --boot --unit=peermemd.service --no-pager --output=cat "$@"; }

# How long the daemon takes to answer, in milliseconds.
answer_ms() {
	local start=${EPOCHREALTIME/./}
	state >/dev/null
	echo $(((${EPOCHREALTIME/./} - start) / 1000))
}

config() { # NAME, text on standard input
	mkdir -p /etc/peermemd/peermemd.toml.d
	cat >"/etc/peermemd/peermemd.toml.d/$1.toml"
}
