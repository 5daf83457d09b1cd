# title: the system bus restarts: the daemon stays, repairs nothing blindly, and is back with the bus
# needs: deb

wait_state ready registered
before=$(daemon_pid)
systemctl stop dbus.socket dbus.service
rmmod nvidia_peermem
# Whether a unit is swapping drivers cannot be seen without a bus, so the repair waits for it.
stays 5 absent nvidia_peermem
systemctl start dbus.socket dbus.service
wait_state ready registered
is "process" "$(daemon_pid)" "$before"
is "loads" "$(tried nvidia_peermem)" 2

systemctl restart dbus.service
wait_state ready registered
is "process" "$(daemon_pid)" "$before"
stays 3 in_state ready registered
