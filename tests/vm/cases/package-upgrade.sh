# title: upgraded while it runs: nothing is unloaded or loaded twice, and the new version has the right state
# needs: deb
# package: upgrade
# timeout: 150

untouched() { [ "$(tried nvidia) $(tried nvidia_peermem) $(removed nvidia_peermem)" = "1 1 0" ]; }

wait_state ready registered
before=$(daemon_pid)
installed=$(dpkg-query --show --showformat='${Version}' peermemd)
dpkg --install /mnt/results/upgrade.deb
[ "$(dpkg-query --show --showformat='${Version}' peermemd)" != "$installed" ]
wait_state ready registered
[ "$(daemon_pid)" != "$before" ]
active peermemd.service
untouched
[ "$(systemctl is-enabled peermemd.service)" = enabled ]
# The transaction that installs us holds repairs, and ends with it.
is "Held" "$(property Held)" false
rmmod nvidia_peermem
eventually 30 live nvidia_peermem
wait_state ready registered
