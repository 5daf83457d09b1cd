# title: both clients live on a stack that allows it: degraded while the legacy is used, then retired
# needs: deb
# set: nosysfs
#> /etc/systemd/system/nv_peer_mem.service
#| [Unit]
#| Before=peermemd.service
#| [Service]
#| Type=oneshot
#| RemainAfterExit=yes
#| ExecStart=/sbin/modprobe nv_peer_mem
#| ExecStart=/sbin/modprobe nvidia-peermem
#| ExecStart=/bin/sh -c 'echo nv_mem:1 >/sys/module/ib_core/parameters/test_pins'
#> /etc/systemd/system/multi-user.target.d/50-case.conf
#| [Unit]
#| Wants=nv_peer_mem.service

settled_in degraded legacy-owns-client
live nv_peer_mem
unpin nv_mem
wait_state ready registered
absent nv_peer_mem
live nvidia_peermem
