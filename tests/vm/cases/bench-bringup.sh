# title: bring-up and repair by the daemon, against modprobe of the same modules
# needs: deb
# group: bench
# timeout: 400
#> /etc/peermemd/peermemd.toml.d/50-case.toml
#| [timing]
#| settle = "100ms"

. /mnt/tests/guest/bench.sh
CHAIN="mlx5_core ib_core mlx5_ib ib_uverbs nvidia nvidia_peermem"
SETTLE_US=100000

unload_all() {
	modprobe -r nvidia_peermem nvidia mlx5_ib ib_uverbs mlx5_core ib_core 2>/dev/null || true
	absent mlx5_core && absent ib_core && absent nvidia
}
modprobe_all() {
	local module
	for module in $CHAIN; do modprobe "$module"; done
}
# A loop that spins would take one of the guest's two processors from the daemon. How finely it
# looks is a few per cent of what it waits for.
exec {nap}<> <(:)
listed_again() { # SECONDS: how long it sleeps between two looks
	until [ -d /sys/kernel/mm/memory_peers/nv_mem ]; do read -rt "$1" -u "$nap" || true; done
}

wait_state ready registered
rounds=7

note "the whole chain: from the reload that ends observe mode to the listing"
for ((i = 0; i < rounds; i++)); do
	systemctl stop peermemd.service
	unload_all
	took modprobe_all >>/tmp/chain.modprobe
	unload_all
	# it looks, but does not begin before it is told
	config 60-bench <<<$'[policy]\nmode = "observe"'
	systemctl start peermemd.service
	wait_state waiting
	rm /etc/peermemd/peermemd.toml.d/60-bench.toml
	pid=$(daemon_pid)
	start=$(now_us)
	kill -HUP "$pid"
	listed_again 0.01
	echo $(($(now_us) - start)) >>/tmp/chain.daemon
	wait_state ready registered
done
report "bring-up of the chain" "$(median </tmp/chain.daemon)" "$(median </tmp/chain.modprobe)" 1.2

note "repair: from the end of rmmod to the listing, the settle time taken off"
for ((i = 0; i < rounds; i++)); do
	systemctl stop peermemd.service
	rmmod nvidia_peermem
	took modprobe nvidia_peermem >>/tmp/repair.modprobe
	systemctl start peermemd.service
	wait_state ready registered
	sleep 1
	rmmod nvidia_peermem
	start=$(now_us)
	listed_again 0.002
	echo $(($(now_us) - start - SETTLE_US)) >>/tmp/repair.daemon
	wait_state ready registered
done
report "repair of the client" "$(median </tmp/repair.daemon)" "$(median </tmp/repair.modprobe)" 1.3
paste /tmp/chain.daemon /tmp/chain.modprobe /tmp/repair.daemon /tmp/repair.modprobe
bars_met
