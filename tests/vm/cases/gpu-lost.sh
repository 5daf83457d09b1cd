# title: a GPU that was there is gone: gpu-lost until it is back
# needs: deb
# cmdline: fakepci.gpus=2 fakepci.nics=1
#> /etc/peermemd/peermemd.toml.d/50-case.toml
#| [policy]
#| require_hardware = true

wait_state ready registered
gpus 1
wait_state degraded gpu-lost
live nvidia_peermem
gpus 2
wait_state ready registered
gpus 0
wait_reason() { [ "$(reason)" = "$1" ]; }
eventually 30 wait_reason gpu-lost
[ "$(state)" != ready ] && [ "$(state)" != not-applicable ]
live nvidia_peermem
