# title: with the guard a restart of openibd succeeds each time and the client is back after it; without it openibd refuses and nothing is broken
# needs: deb
# rounds: 2
# proof: 50 1200
# timeout: 240

. /mnt/tests/guest/openibd.sh

untouched() { [ "$(property AttemptCount)" = "$steps" ] && live nvidia_peermem && in_state ready registered; }

wait_state ready registered
install_openibd
wait_state ready registered
steps=$(property AttemptCount)

note "without the guard"
for round in $(seq "$ROUNDS"); do
	# systemd starts again what could not be stopped; the refusal is in the unit's log.
	systemctl restart openibd.service
	is "refusals" "$(refusals)" "$round"
	is "restarts" "$(restarts)" 0
	untouched
done
systemctl stop openibd.service
is "openibd that refused to stop" "$(systemctl is-active openibd.service)" failed
systemctl start openibd.service
untouched

note "with the guard"
systemctl enable --now peermemd-stand-down@openibd.service
for round in $(seq "$ROUNDS"); do
	systemctl restart openibd.service
	is "restarts in round $round" "$(restarts)" "$round"
	active openibd.service
	eventually 20 active peermemd-stand-down@openibd.service
	eventually 30 live nvidia_peermem
	wait_state ready registered
	is "Held" "$(property Held)" false
	is "steps in round $round" "$(property AttemptCount)" $((steps + 2 * round))
done
is "refusals" "$(refusals)" $((ROUNDS + 1))
matches "history" "$(history)" 'unit-openibd'
if grep -q rival-actor <<<"$(property Advisories) $(history)"; then fail "a restart of openibd is no rival"; fi

note "stopped, the client stays out; started, it comes back"
systemctl stop openibd.service
stays 3 absent nvidia_peermem
in_state waiting held
matches "status" "$(peermemctl status || true)" 'openibd.service is being stopped'
systemctl start openibd.service
eventually 20 active peermemd-stand-down@openibd.service
eventually 30 live nvidia_peermem
wait_state ready registered

note "in use: openibd is left to refuse, and both say who it is"
pin nv_mem 2
systemctl restart openibd.service
is "refusals" "$(refusals)" $((ROUNDS + 2))
matches "the guard" "$(journalctl --boot --unit=peermemd-stand-down@openibd.service --no-pager --output=cat)" 'live memory regions: 2'
live nvidia_peermem
in_state ready registered
is "Held" "$(property Held)" false
unpin nv_mem
eventually 20 active peermemd-stand-down@openibd.service
systemctl restart openibd.service
is "restarts" "$(restarts)" $((ROUNDS + 2))
eventually 30 live nvidia_peermem
wait_state ready registered
