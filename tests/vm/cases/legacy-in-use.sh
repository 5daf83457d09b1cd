# title: an nv_peer_mem with a pinned region stays until the region is given back
# needs: deb
#> /etc/systemd/system/nv_peer_mem.service
#| [Unit]
#| Before=peermemd.service
#| [Service]
#| Type=oneshot
#| RemainAfterExit=yes
#| ExecStart=/sbin/modprobe nv_peer_mem
#| ExecStart=/bin/sh -c 'echo nv_mem:1 >/sys/module/ib_core/parameters/test_pins'
#> /etc/systemd/system/multi-user.target.d/50-case.conf
#| [Unit]
#| Wants=nv_peer_mem.service

settled_in blocked legacy-in-use
live nv_peer_mem
active nv_peer_mem.service
is "references" "$(refcnt nv_peer_mem)" 1
is "removals" "$(removed nv_peer_mem)" 0
is "loads" "$(tried nvidia_peermem)" 0
matches "status" "$(property StatusText)" nv_peer_mem

unpin nv_mem
wait_state ready registered
absent nv_peer_mem
is "owner" "$(peer version)" 570.124.06
