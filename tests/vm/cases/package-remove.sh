# title: removed and purged: nothing is unloaded, and nothing of ours stays behind
# needs: deb
# timeout: 150

wait_state ready registered
dpkg --remove peermemd
live nvidia_peermem
is "removals" "$(removed nvidia_peermem)" 0
if systemctl is-active --quiet peermemd.service; then fail "the daemon still runs"; fi
[ -s /var/lib/peermemd/history.jsonl ] || fail "the history goes with a purge only"

dpkg --purge peermemd
live nvidia_peermem
listed
left=$(find / -xdev -name '*peermemd*' -not -path '/proc/*' -not -path '/sys/*' -not -path '*/dpkg/*' \
	-not -path /etc/peermemd -not -path '/etc/peermemd/*' -not -path '/tmp/*' -not -path '/var/tmp/*')
is "left behind" "$left" ""
