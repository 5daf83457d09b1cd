# title: udev loads the drivers for devices of its own accord, racing the daemon
# needs: deb
# cmdline: fakepci.gpus=2 fakepci.nics=2
#> /etc/peermemd/peermemd.toml.d/50-case.toml
#| [policy]
#| require_hardware = true

wait_state ready registered
live mlx5_core
live nvidia
bound 0001:00:00.0
listed
is "tries" "$(tried nvidia) $(tried nvidia_peermem)" "1 1"
stays 5 in_state ready registered
