# title: somebody who keeps unloading the client is named after the budget is used up, without a hot loop
# needs: deb
# timeout: 180
#> /etc/peermemd/peermemd.toml.d/50-case.toml
#| [policy]
#| require_hardware = false
#| [timing]
#| settle = "1s"
#| repairs_per_hour = 4
#> /etc/systemd/system/rival.service
#| [Service]
#| ExecStart=/bin/sh -c 'while :; do rmmod nvidia_peermem 2>/dev/null; done'

wait_state ready registered
systemctl start rival.service
wait_state blocked rival-actor 90
stays 5 in_state blocked rival-actor
# The first, the budget, and at most the one reload of a client that was seen half gone.
loads=$(tried nvidia_peermem)
[ "$loads" -eq 5 ] || [ "$loads" -eq 6 ] || fail "$loads loads"
property StatusText

note "with the rival gone an operator's word brings it back"
systemctl stop rival.service
is "Reconcile" "$(call Reconcile)" 's "ready"'
