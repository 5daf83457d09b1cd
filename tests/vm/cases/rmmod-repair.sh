# title: a client that somebody removed is back after the settle time, and the history says so
# needs: deb

wait_state ready registered
for round in 2 3; do
	rmmod nvidia_peermem
	eventually 30 live nvidia_peermem
	wait_state ready registered
	is "loads" "$(tried nvidia_peermem)" $round
done
listed
matches "history" "$(history)" nvidia_peermem
peermemctl history
[ -n "$(ls /var/lib/peermemd)" ]

note "the whole upper half"
modprobe -r nvidia_peermem
eventually 30 live nvidia_peermem
wait_state ready registered
