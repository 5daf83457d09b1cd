# title: with the hooks installed a reload of openibd, and its script called directly, stand the client down and bring it back
# needs: deb
# package: upgrade
# timeout: 180

. /mnt/tests/guest/openibd.sh

back_after() { # WHAT COMMAND…
	local before what=$1
	before=$(restarts_of_script)
	shift
	note "$what"
	"$@"
	is "restarts" "$(restarts_of_script)" $((before + 1))
	eventually 30 live nvidia_peermem
	wait_state ready registered
	is "Held" "$(property Held)" false
}
restarts_of_script() { wc -l </run/openibd.log; }
directly() { sh /mnt/tests/guest/openibd restart; }

wait_state ready registered
install_openibd
: >/run/openibd.log
fails_with 'in use by: nvidia_peermem' directly
live nvidia_peermem

# The image leaves documentation out; the package has it.
dpkg-deb --extract /mnt/results/upgrade.deb /tmp/package
mkdir -p /etc/infiniband
for hook in pre-stop post-start; do
	install -m 0755 "/tmp/package/usr/share/doc/peermemd/examples/openibd-$hook.sh" "/etc/infiniband/$hook-hook.sh"
done
back_after "reload" systemctl reload openibd.service
back_after "called directly" directly

note "in use: both say who it is, and nothing is touched"
pin nv_mem 3
fails_with 'live memory regions: 3.*in use by: nvidia_peermem' directly
live nvidia_peermem
in_state ready registered
is "Held" "$(property Held)" false
unpin nv_mem

note "the daemon was stopped: nothing is unloaded that nobody would bring back"
systemctl stop peermemd.service
fails_with 'nobody would bring nvidia_peermem back.*in use by: nvidia_peermem' directly
live nvidia_peermem
rmmod nvidia_peermem
directly
is "holds" "$(ls /run/peermemd/holds)" ""
systemctl start peermemd.service
wait_state ready registered
