# title: restarted and killed during a hanging init: the load goes on, is found and waited for
# needs: deb
# cmdline: peermem_test.faults=nvidia:0:1:90000
# timeout: 120

loading() { in_state converging load-running || in_state converging load-stuck; }

eventually 30 loading
systemctl restart peermemd.service
eventually 20 loading
grep -q coming /sys/module/nvidia/initstate
kill -9 "$(daemon_pid)"
eventually 20 loading
matches "status" "$(property StatusText)" nvidia
is "tries" "$(tried nvidia)" 1
clear_faults
wait_state ready registered
is "tries" "$(tried nvidia) $(tried nvidia_peermem)" "1 1"
