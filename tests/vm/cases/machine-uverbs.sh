# title: the newer stacks: ib_uverbs is the home of the symbols and has the client as holder
# set: uverbs

modprobe nvidia-peermem
matches "holders of ib_uverbs" "$(holders ib_uverbs)" nvidia_peermem
if [[ $(holders ib_core) == *nvidia_peermem* ]]; then fail "ib_core is a home as well"; fi
grep -q ' ib_register_peer_memory_client	\[ib_uverbs\]' /proc/kallsyms
[ ! -e /sys/kernel/mm/memory_peers ]
modprobe mlx5_ib
live mlx5_ib
