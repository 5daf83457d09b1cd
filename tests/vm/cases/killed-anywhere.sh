# title: daemon, holders and client program killed at random moments of restarts and upgrades leave nothing stuck
# needs: deb
# rounds: 4
# proof: 24 1200
# timeout: 240

. /mnt/tests/guest/openibd.sh
. /mnt/tests/guest/driver.sh

# The same moments in every run, as far as the machine is as quick.
RANDOM=4711
HOLDS=/run/peermemd/holds

# One victim, once, within SECONDS. PATTERN is a command line, or "daemon".
kill_within() { # SECONDS PATTERN
	local moment=$((RANDOM % ($1 * 10)))
	(
		set +E
		trap - ERR
		sleep $((moment / 10)).$((moment % 10))
		for _ in $(seq 20); do
			victim=$([ "$2" = daemon ] && daemon_pid || pgrep --oldest --full -- "$2") || true
			if [ "${victim:-0}" != 0 ]; then
				kill -9 "$victim" && echo "   killed $2 after ${moment}00 ms"
				break
			fi
			# One that comes and goes quickly is waited for.
			[ "$2" != daemon ] || break
			sleep 0.1
		done
	) &
	KILLER=$!
}

# What must be so in the end, whatever happened.
nothing_is_stuck() {
	wait "$KILLER"
	wait_state ready registered 60
	live nvidia_peermem
	eventually 10 not_held
	is "left of holds" "$(ls "$HOLDS")" ""
}
not_held() { [ "$(property Held 2>/dev/null)" = false ]; }
has_holds() { [ "$(property Holds 2>/dev/null | cut -d' ' -f1)" = "$1" ]; }

restart_openibd() {
	local victim
	victim=$([ $((RANDOM % 2)) = 0 ] && echo daemon || echo '^/usr/bin/peermemctl .*unit-openibd')
	kill_within 4 "$victim"
	systemctl restart openibd.service
	active openibd.service
	eventually 20 active peermemd-stand-down@openibd.service
	nothing_is_stuck
	# And the next one is as if nothing had been.
	systemctl restart openibd.service
	eventually 20 active peermemd-stand-down@openibd.service
	nothing_is_stuck
}

# A daemon that was killed has forgotten what it saw go, so that a swap without a lock may fail.
swap() { # COMMAND… BUILD
	kill_within 6 daemon
	"$@" || note "the swap failed; once more"
	nothing_is_stuck
	[ "$(cat /sys/module/nvidia_peermem/version)" = "570.124.0${*: -1}" ] || "$@"
	nothing_is_stuck
	runs_build "${*: -1}"
}
by_dpkg() { dpkg --install "/tmp/driver-$1.deb" >/dev/null; }

holders() {
	peermemctl hold --name operator --why "it is kept"
	peermemctl inhibit --what load --why "a test" -- sleep 601 &
	local inhibitor=$!
	eventually 20 has_holds 2
	kill_within 3 daemon
	wait "$KILLER"
	kill_within 3 'sleep 601'
	wait "$inhibitor" || true
	eventually 30 has_holds 1
	matches "kept" "$(property Holds)" 'operator.*it is kept'
	kill_within 3 daemon
	peermemctl unhold
	nothing_is_stuck

	peermemctl stand-down --why "a test" -- sleep 602 &
	local holder=$!
	kill_within 4 'stand-down|sleep 602'
	wait "$holder" || true
	nothing_is_stuck
}

wait_state ready registered
install_openibd
systemctl enable --now peermemd-stand-down@openibd.service
builds 7 8
packages 7 8
for round in $(seq "$ROUNDS"); do
	build=$((7 + round / 4 % 2))
	case $((round % 4)) in
	0) what="restart_openibd" ;;
	1) what="swap run_installer $build" ;;
	2) what="swap by_dpkg $build" ;;
	3) what="holders" ;;
	esac
	note "round $round: $what"
	$what
done
systemctl restart openibd.service
nothing_is_stuck
is "daemon" "$(systemctl is-active peermemd.service)" active
