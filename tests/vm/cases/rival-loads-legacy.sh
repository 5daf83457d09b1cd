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
#| ExecStart=/bin/sh -c 'while :; do modprobe nv_peer_mem; done'

wait_state ready registered
systemctl start rival.service
# The first removal is the job; three more are the budget. Between two of them the reason is
# legacy-kept as well, so that only the text tells that the budget is used up.
used_up() { [[ $(property StatusText) =~ 'within an hour' ]]; }
removed_four() { [ "$(removed nv_peer_mem)" = 4 ]; }
eventually 90 used_up
in_state degraded legacy-kept
stays 8 removed_four
live nvidia_peermem
used_up
is "loads of the client" "$(tried nvidia_peermem)" 1

note "with the rival gone an operator's word retires it"
systemctl stop rival.service
is "Reconcile" "$(call Reconcile)" 's "ready"'
absent nv_peer_mem
