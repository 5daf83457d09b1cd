# title: two clients of one name: without sysfs both load, and the first serves all regions
# set: nosysfs

modprobe nv_peer_mem
modprobe nvidia-peermem
live nv_peer_mem
live nvidia_peermem
[ ! -e /sys/kernel/mm/memory_peers ]
if grep -q ' num_alloc_mrs_show	\[ib' /proc/kallsyms; then fail "sysfs code is there"; fi
pin nv_mem 2
is "references of the first" "$(refcnt nv_peer_mem)" 2
is "references of the second" "$(refcnt nvidia_peermem)" 0
