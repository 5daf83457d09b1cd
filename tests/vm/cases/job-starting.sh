# title: a job that has opened the GPU and an RDMA device counts as a user of nv_peer_mem
# needs: deb

# A user context on a soft RDMA device, as any RDMA program has one (ib_uverbs, GET_CONTEXT).
open_rdma() {
	perl -e '
		open(my $device, "+<", "/dev/infiniband/uverbs0") or die "uverbs0: $!";
		my $response = "\0" x 64;
		syswrite($device, pack("LSSP", 0, 4, 2, $response)) or die "GET_CONTEXT: $!";
		sleep 600;' &
	job=$!
}
contexts() { rdma resource show ctx | grep -c 'ctxn'; }
has_context() { [ "$(contexts)" -gt 0 ]; }

wait_state ready registered
systemctl stop peermemd.service
rmmod nvidia_peermem
modprobe -a nv_peer_mem nvidia-uvm dummy rdma_rxe
ip link add dummy0 type dummy
ip link set dummy0 up
rdma link add rxe0 type rxe netdev dummy0
eventually 10 test -c /dev/infiniband/uverbs0
open_rdma
exec 3</dev/nvidia-uvm
eventually 10 has_context
is "references" "$(refcnt nv_peer_mem)" 0

systemctl start peermemd.service
settled_in blocked legacy-in-use
is "removals" "$(removed nv_peer_mem)" 0
matches "status" "$(property StatusText)" nv_peer_mem

note "the GPU is still open, the RDMA device is not"
kill "$job"
wait_state ready registered
absent nv_peer_mem
exec 3<&-
