# title: nvidia's init hangs: the daemon answers all the while, says so, and goes on afterwards
# needs: deb
# cmdline: peermem_test.faults=nvidia:0:1:60000
# timeout: 120

coming() { [ "$(cat /sys/module/nvidia/initstate 2>/dev/null)" = coming ]; }

eventually 40 coming
wait_state converging load-stuck
matches "status" "$(property StatusText)" nvidia
is "LoadState" "$(module_property nvidia LoadState)" loading
for round in 1 2 3 4 5 6 7 8 9 10; do
	took=$(answer_ms)
	[ "$took" -lt 1500 ] || fail "answer after $took ms"
done
active peermemd.service
absent nvidia_peermem
clear_faults
wait_state ready registered
is "tries" "$(tried nvidia)" 1
