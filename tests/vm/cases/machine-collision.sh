# title: two clients of one name: with sysfs the second is refused, with the messages of the real one
# set: ofed

modprobe nv_peer_mem
is "version" "$(peer version)" 1.3-0
mark_log
fails_with 'Invalid argument' modprobe nvidia-peermem
absent nvidia_peermem
logged "cannot create duplicate filename '/kernel/mm/memory_peers/nv_mem'"
logged 'kobject_add_internal failed for nv_mem with -EEXIST'
logged 'nvidia-peermem .* ERROR nv_mem_client_init -- error while registering nc client'
rmmod nv_peer_mem
modprobe nvidia-peermem
is "version" "$(peer version)" 570.124.06
