# title: holds last over restarts of daemon and bus, the GPU side goes and comes back as one, and who uses it is named
# needs: deb
# timeout: 180

not_held() { [ "$(property Held 2>/dev/null)" = false ]; }
is_held() { [ "$(property Held 2>/dev/null)" = true ]; }
gpu_is_out() { absent nvidia_peermem && absent nvidia_uvm && absent nvidia; }
gpu_is_back() { live nvidia_peermem && live nvidia_uvm && live nvidia; }

# A user context on a soft RDMA device, as any RDMA program has one (ib_uverbs, GET_CONTEXT).
open_rdma() {
	modprobe -a dummy rdma_rxe
	ip link add dummy0 type dummy
	ip link set dummy0 up
	rdma link add rxe0 type rxe netdev dummy0
	eventually 10 test -c /dev/infiniband/uverbs0
	perl -e '
		open(my $device, "+<", "/dev/infiniband/uverbs0") or die "uverbs0: $!";
		my $response = "\0" x 64;
		syswrite($device, pack("LSSP", 0, 4, 2, $response)) or die "GET_CONTEXT: $!";
		sleep 600;' &
	job=$!
	eventually 10 has_context
}
has_context() { rdma resource show ctx | grep 'ctxn' >/dev/null; }

modprobe nvidia-uvm
wait_state ready registered

note "signals and exit codes are the command's own"
code=0
peermemctl inhibit -- sh -c 'exit 7' || code=$?
is "exit code" "$code" 7
code=0
peermemctl stand-down --why "a test" -- sh -c '[ ! -d /sys/module/nvidia_peermem ] && kill -TERM $$' || code=$?
is "exit code" "$code" $((128 + 15))
wait_state ready registered

note "an inhibitor outlives the daemon and the bus"
peermemctl inhibit --who "an installer" --why "a test" -- sleep 600 &
holder=$!
eventually 20 is_held
systemctl restart peermemd.service dbus.service
eventually 30 is_held
matches "status" "$(peermemctl status || true)" 'an installer'
rmmod nvidia_peermem
wait_state waiting held
stays 3 absent nvidia_peermem
kill "$holder"
wait "$holder" || true
wait_state ready registered

note "the GPU side as one"
peermemctl stand-down --gpu --why "a driver upgrade" -- sh -c 'ls /sys/module >/run/while-out; sleep 1'
if grep -qE '^nvidia' /run/while-out; then fail "a part of it stayed: $(grep nvidia /run/while-out)"; fi
eventually 30 gpu_is_back
wait_state ready registered
exec 3</dev/nvidia-uvm
before=$(removed nvidia_peermem)
fails_with 'nvidia_uvm is in use.*bash' peermemctl stand-down --gpu --why "a driver upgrade" -- true
exec 3<&-
is "removals" "$(removed nvidia_peermem)" "$before"
gpu_is_back
not_held

note "the daemon itself names whoever has an RDMA device open"
open_rdma
pin nv_mem 5
fails_with "live memory regions: 5; RDMA devices are open in perl \\($job\\)" \
	busctl call "$BUS" "$ROOT" "$BUS.Manager" StandDown sss client "a test" "to see"
unpin nv_mem
kill "$job"
in_state ready registered
