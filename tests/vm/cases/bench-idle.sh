# title: context switches and memory of an idle daemon
# needs: deb
# group: bench
# timeout: 900
#> /etc/systemd/system/peermemd.service.d/50-case.conf
#| [Service]
#| WatchdogSec=30s
#> /etc/peermemd/peermemd.toml.d/50-case.toml
#| [timing]
#| resync = "1h"

# Ten minutes with a ping every fifteen seconds and no resync; what a resync costs comes after it.
. /mnt/tests/guest/bench.sh
IDLE=600
PINGS=40

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

note "what resyncs cost: a minute with one every 3.5 to 4 s"
config 60-bench <<<$'[timing]\nresync = "4s"'
kill -HUP "$pid"
sleep 5
before=$(switches "$pid")
sleep 60
after=$(switches "$pid")
echo "    voluntary switches of about 16 resyncs and 4 pings: $((after - before))" | tee -a /mnt/results/report.txt
bars_met
