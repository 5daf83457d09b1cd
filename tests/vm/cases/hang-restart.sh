# title: restarted and killed during a hanging init: the load goes on, is found and waited for
# needs: deb
# cmdline: peermem_test.faults=nvidia:0:1:90000
# timeout: 120

coming() { [ "$(cat /sys/module/nvidia/initstate 2>/dev/null)" = coming ]; }
loading() { in_state converging load-running || in_state converging load-stuck; }

eventually 40 coming
eventually 10 loading
systemctl restart peermemd.service
eventually 20 loading
coming
matches "status" "$(property StatusText)" nvidia
kill -9 "$(daemon_pid)"
eventually 20 loading
matches "status" "$(property StatusText)" nvidia
is "LoadState" "$(module_property nvidia LoadState)" loading
is "tries" "$(tried nvidia)" 1
clear_faults
wait_state ready registered
is "tries" "$(tried nvidia) $(tried nvidia_peermem)" "1 1"
