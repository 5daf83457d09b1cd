# title: deny lists, install lines that load nothing, and bad options are named, and ready once gone
# needs: deb
#> /etc/modprobe.d/case.conf
#| blacklist nvidia_peermem

becomes() { # REASON LINE
	echo "$2" >/etc/modprobe.d/case.conf
	wait_state blocked "$1"
	absent nvidia_peermem
}

settled_in blocked deny-listed
becomes install-command-failed 'install nvidia_peermem /bin/true'
becomes bad-parameter 'options nvidia_peermem peerdirect_support=7'
rm /etc/modprobe.d/case.conf
wait_state ready registered
