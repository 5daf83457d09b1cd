# title: somebody who keeps loading nv_peer_mem is not fought over without end
# needs: deb
# set: nosysfs
# timeout: 180
#> /etc/peermemd/peermemd.toml.d/50-case.toml
#| [policy]
#| require_hardware = false
#| [timing]
#| settle = "1s"
#| repairs_per_hour = 3
#> /etc/systemd/system/rival.service
#| [Service]
#| ExecStart=/bin/sh -c 'while sleep 0.5; do modprobe nv_peer_mem; done'

wait_state ready registered
systemctl start rival.service
# The first removal is the job; three more are the budget.
removed_four() { [ "$(removed nv_peer_mem)" = 4 ]; }
eventually 60 removed_four
wait_state degraded legacy-kept
stays 5 removed_four
live nvidia_peermem
matches "text" "$(property StatusText)" 'within an hour'
is "loads of the client" "$(tried nvidia_peermem)" 1

note "with the rival gone an operator's word retires it"
systemctl stop rival.service
is "Reconcile" "$(call Reconcile)" 's "ready"'
absent nv_peer_mem
