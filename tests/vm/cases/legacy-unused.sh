# title: an unused nv_peer_mem is stopped and removed, and the client takes its place
# needs: deb
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

wait_state ready registered
absent nv_peer_mem
is "owner" "$(peer version)" 570.124.06
eventually 10 is_inactive nv_peer_mem.service
is "removals" "$(removed nv_peer_mem)" 1

note "it returns and is retired again"
rmmod nvidia_peermem
modprobe nv_peer_mem || true
eventually 30 live nvidia_peermem
wait_state ready registered
absent nv_peer_mem
