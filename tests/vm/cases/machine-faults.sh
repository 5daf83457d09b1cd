# title: faults from the kernel command line and at run time, delays, references, hidden registrations
# set: ofed
# cmdline: peermem_test.faults=nvidia:19:2:0

fails_with 'No such device' modprobe nvidia
logged 'NVRM: None of the NVIDIA devices were initialized'
[ ! -e /proc/driver/nvidia ]
fails_with 'No such device' modprobe nvidia-peermem
modprobe nvidia
live nvidia
is "tries" "$(tried nvidia)" 3

note "a parameter that is out of range"
fails_with 'Invalid argument' modprobe nvidia-peermem peerdirect_support=7
logged 'nvidia-peermem .* ERROR invalid peerdirect_support param value 7'
fails_with 'Invalid argument' modprobe nvidia-peermem persistent_api_support=5
logged 'nvidia-peermem .* ERROR invalid persistent_api_support param value 5'

note "the older interface registers two clients"
modprobe nvidia-peermem persistent_api_support=0
is "clients" "$(peers | xargs)" "nv_mem nv_mem_nc"

note "pinned regions hold the module"
pin nv_mem 3
is "references" "$(refcnt nvidia_peermem)" 3
is "regions" "$(peer num_alloc_mrs)" 3
is "bytes" "$(peer num_reg_bytes)" 196608
fails_with 'in use' rmmod nvidia_peermem
unpin nv_mem
is "references" "$(refcnt nvidia_peermem)" 0
is "regions given back" "$(peer num_dealloc_mrs)" 3
rmmod nvidia_peermem

note "live, yet not listed"
unlisted 1
modprobe nvidia-peermem
live nvidia_peermem
[ ! -e /sys/kernel/mm/memory_peers ]
rmmod nvidia_peermem
modprobe nvidia-peermem
listed

note "an open nvidia-uvm counts as a user"
modprobe nvidia-uvm
eventually 10 test -c /dev/nvidia-uvm
exec 3</dev/nvidia-uvm
is "users of nvidia_uvm" "$(refcnt nvidia_uvm)" 1
exec 3<&-
is "users of nvidia_uvm" "$(refcnt nvidia_uvm)" 0
