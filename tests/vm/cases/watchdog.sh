# title: a daemon that hangs is restarted by the watchdog, and what it does not do is not undone
# needs: deb
# timeout: 120
#> /etc/systemd/system/peermemd.service.d/50-case.conf
#| [Service]
#| WatchdogSec=15s

replaced() { [ "$(daemon_pid)" != "$before" ] && [ "$(daemon_pid)" != 0 ]; }

wait_state ready registered
before=$(daemon_pid)
stays 20 active peermemd.service
is "process" "$(daemon_pid)" "$before"

kill -STOP "$before"
eventually 40 replaced
wait_state ready registered
is "result" "$(tried nvidia) $(tried nvidia_peermem) $(removed nvidia_peermem)" "1 1 0"
journalctl --boot --no-pager --unit=peermemd.service | grep -i 'watchdog timeout'
