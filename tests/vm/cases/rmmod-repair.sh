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

note "the driver below it goes as well: somebody swaps drivers, until an operator says otherwise"
modprobe -r nvidia_peermem
absent nvidia
wait_state waiting driver-swap
stays 5 absent nvidia_peermem
matches "status" "$(property StatusText)" nvidia
is "Reconcile" "$(call Reconcile)" 's "ready"'
live nvidia_peermem
