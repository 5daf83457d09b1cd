# title: Get State against systemd's own Manager.Version on the same bus, idle and during a load that hangs
# needs: deb
# group: bench
# tools: bus_latency
# timeout: 300

. /mnt/tests/guest/bench.sh
sample() { /mnt/results/bus_latency /run/dbus/system_bus_socket 1000 >"$1"; cat "$1"; }
of() { awk -v key="$2" '$1 == key { print $2 }' "$1"; } # FILE KEY

wait_state ready registered
sleep 2
sample /tmp/idle
report "Get State, idle" "$(of /tmp/idle peermemd)" "$(of /tmp/idle systemd)" 1.15

systemctl stop peermemd.service
modprobe -r nvidia_peermem nvidia
fault nvidia 0 1 240000
systemctl start peermemd.service
wait_state converging load-stuck
is "LoadState" "$(module_property nvidia LoadState)" loading
sample /tmp/hanging
is "Reason" "$(reason)" load-stuck
report "Get State, hanging against idle" "$(of /tmp/hanging peermemd)" "$(of /tmp/idle peermemd)" 2
clear_faults
wait_state ready registered
bars_met
