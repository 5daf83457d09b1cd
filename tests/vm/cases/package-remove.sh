# title: removed and purged, with a guard that stands: nothing is unloaded, and nothing of ours stays behind
# needs: deb
# timeout: 150

. /mnt/tests/guest/openibd.sh

wait_state ready registered
install_openibd
systemctl enable --now peermemd-stand-down@openibd.service
dpkg --remove peermemd
live nvidia_peermem
is "removals" "$(removed nvidia_peermem)" 0
if systemctl is-active --quiet peermemd.service; then fail "the daemon still runs"; fi
is_inactive peermemd-stand-down@openibd.service
systemctl restart openibd.service
is "refusals, as without the guard" "$(refusals)" 1
rmmod nvidia_peermem
systemctl restart openibd.service
is "restarts" "$(restarts)" 1
active openibd.service
is "failed units" "$(systemctl list-units --failed --plain --no-legend)" ""
modprobe nvidia_peermem
[ -s /var/lib/peermemd/history.jsonl ] || fail "the history goes with a purge only"

dpkg --purge peermemd
live nvidia_peermem
listed
left=$(find / -xdev -name '*peermemd*' -not -path '/proc/*' -not -path '/sys/*' -not -path '*/dpkg/*' \
	-not -path /etc/peermemd -not -path '/etc/peermemd/*' -not -path '/tmp/*' -not -path '/var/tmp/*')
is "left behind" "$left" ""
