# title: fewer GPUs than the configuration expects: degraded
# needs: deb
# cmdline: fakepci.gpus=1 fakepci.nics=1
#> /etc/peermemd/peermemd.toml.d/50-case.toml
#| [policy]
#| require_hardware = true
#| [expect]
#| gpus = 2

wait_state degraded gpu-lost
listed
gpus 2
wait_state ready registered
