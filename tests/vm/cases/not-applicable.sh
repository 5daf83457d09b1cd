# title: a node without GPU and RDMA NIC: nothing loaded, nothing logged above info
# needs: deb
#> /etc/peermemd/peermemd.toml.d/50-case.toml
#| [policy]
#| require_hardware = true

wait_state not-applicable
matches "reason" "$(reason)" '^no-(gpu|nic)$'
active peermemd.service
for module in mlx5_core ib_core nvidia nvidia_peermem; do
	absent $module
done
is "log above info" "$(daemon_log --priority=notice)" ""
peermemctl status
