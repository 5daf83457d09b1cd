# title: the system bus restarts: the daemon stays, repairs meanwhile, and publishes again
# needs: deb

wait_state ready registered
before=$(daemon_pid)
systemctl stop dbus.socket dbus.service
rmmod nvidia_peermem
eventually 30 live nvidia_peermem
systemctl start dbus.socket dbus.service
wait_state ready registered
is "process" "$(daemon_pid)" "$before"
is "loads" "$(tried nvidia_peermem)" 2

systemctl restart dbus.service
wait_state ready registered
is "process" "$(daemon_pid)" "$before"
stays 3 in_state ready registered
