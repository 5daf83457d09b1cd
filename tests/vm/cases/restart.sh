# title: restart, stop and start, kill -9: nothing is unloaded, no work is done twice
# needs: deb

untouched() { [ "$(tried nvidia) $(tried nvidia_peermem) $(removed nvidia_peermem)" = "1 1 0" ]; }

wait_state ready registered
before=$(daemon_pid)
systemctl restart peermemd.service
wait_state ready registered
[ "$(daemon_pid)" != "$before" ]
untouched

kill -9 "$(daemon_pid)"
sleep 1
wait_state ready registered
active peermemd.service
untouched

systemctl stop peermemd.service
live nvidia_peermem
[ ! -e /run/peermemd/state.json ]
rmmod nvidia_peermem
systemctl start peermemd.service
wait_state ready registered
is "loads" "$(tried nvidia_peermem)" 2
