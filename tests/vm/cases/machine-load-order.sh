# title: modprobe of the client brings up its whole chain, and memory_peers lists it
# set: ofed

absent ib_core
absent nvidia
modprobe nvidia-peermem
live nvidia_peermem
is "loading order" "$(module_log | xargs)" "nvidia init nvidia passed nvidia_peermem init nvidia_peermem passed"
matches "holders of ib_core" "$(holders ib_core)" nvidia_peermem
matches "holders of nvidia" "$(holders nvidia)" nvidia_peermem
is "clients" "$(peers)" nv_mem
is "version" "$(peer version)" 570.124.06
for counter in alloc_mrs dealloc_mrs reg_pages dereg_pages reg_bytes dereg_bytes free_callbacks; do
	is "$counter" "$(peer num_$counter)" 0
done
grep -q ' num_alloc_mrs_show	\[ib_core\]' /proc/kallsyms
matches "version file" "$(head -1 /proc/driver/nvidia/version)" 'Open Kernel Module for x86_64  570\.124\.06 '

note "the real mlx5 drivers load on top of our ib_core"
modprobe mlx5_ib
live mlx5_core
live mlx5_ib
live ib_uverbs
if logged 'disagrees about version'; then fail "CRCs of ib_core changed"; fi

note "the control module is in nobody's way"
is "users of peermem_test" "$(refcnt peermem_test)" 0
is "holders of peermem_test" "$(holders peermem_test)" ""

note "the folder goes with the last client"
rmmod nvidia_peermem
[ ! -e /sys/kernel/mm/memory_peers ]
