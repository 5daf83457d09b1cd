# title: no good client to replace it with: nv_peer_mem stays until there is one
# needs: deb
# set: bad-stub
#> /etc/systemd/system/nv_peer_mem.service
#| [Unit]
#| Before=peermemd.service
#| [Service]
#| Type=oneshot
#| RemainAfterExit=yes
#| ExecStart=/sbin/modprobe nv_peer_mem
#> /etc/systemd/system/multi-user.target.d/50-case.conf
#| [Unit]
#| Wants=nv_peer_mem.service

settled_in degraded legacy-kept
live nv_peer_mem
is "owner" "$(peer version)" 1.3-0
is "removals" "$(removed nv_peer_mem)" 0
matches "status or remedy" "$(property StatusText) $(property Remedy)" 'peer'

use_client core
wait_state ready registered
absent nv_peer_mem
