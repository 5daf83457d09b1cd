# title: a forced restart of openibd that takes the client away is repaired each time, after the unit is done
# needs: deb
# timeout: 300
#> /etc/systemd/system/openibd.service
#| [Unit]
#| Before=peermemd.service
#| [Service]
#| Type=oneshot
#| RemainAfterExit=yes
#| ExecStart=/bin/sh -c 'modprobe -a mlx5_ib ib_uverbs; sleep 1'
#| ExecStop=/bin/sh -c 'for m in nvidia_peermem mlx5_ib mlx5_core ib_uverbs ib_core; do rmmod $m; sleep 0.3; done; sleep 1'
#> /etc/systemd/system/multi-user.target.d/50-case.conf
#| [Unit]
#| Wants=openibd.service

wait_state ready registered
for round in $(seq 10); do
	before=$(tried nvidia_peermem)
	systemctl restart openibd.service
	# The stop script succeeds only if nobody loads anything in between.
	eventually 30 live nvidia_peermem
	wait_state ready registered
	is "loads in round $round" "$(tried nvidia_peermem)" $((before + 1))
done
matches "history" "$(history)" 'openibd\.service'
if grep -q 'rival-actor' <<<"$(property Advisories) $(reason)"; then fail "a restart of openibd is no rival"; fi
