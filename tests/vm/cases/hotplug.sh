# title: GPU and NIC arrive on a node that had none: the stack comes up
# needs: deb
#> /etc/peermemd/peermemd.toml.d/50-case.toml
#| [policy]
#| require_hardware = true

wait_state not-applicable
modprobe fakepci gpus=1 nics=1
wait_state ready registered 60
listed
