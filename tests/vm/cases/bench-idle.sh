# title: context switches and memory of an idle daemon
# needs: deb
# group: bench
# timeout: 300
#> /etc/systemd/system/peermemd.service.d/50-case.conf
#| [Service]
#| WatchdogSec=20s

# Two minutes with a ping every ten seconds in place of ten minutes with one every thirty; the first
# resync comes after more than four minutes.
. /mnt/tests/guest/bench.sh
IDLE=120
PINGS=12

switches() {
	awk '/^voluntary_ctxt_switches/ { sum += $2 } END { print sum }' /proc/"$1"/task/*/status
}

wait_state ready registered
sleep 5
pid=$(daemon_pid)
before=$(switches "$pid")
sleep $IDLE
after=$(switches "$pid")
report "voluntary switches per ping" $((after - before)) $PINGS 2
report "resident memory, KiB against 8 MiB" "$(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status")" 8192 1
grep -E '^(VmRSS|RssAnon|RssFile|Threads)' "/proc/$pid/status"
is "process" "$(daemon_pid)" "$pid"
bars_met
