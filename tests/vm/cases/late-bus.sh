# title: started before there is a system bus: does its work, and is on the bus once it exists
# needs: deb
#> /etc/systemd/system/dbus.service.d/50-case.conf
#| [Unit]
#| ConditionPathExists=/run/bus-wanted
#> /etc/systemd/system/dbus.socket.d/50-case.conf
#| [Unit]
#| ConditionPathExists=/run/bus-wanted

eventually 30 active peermemd.service
if active dbus.service; then fail "the bus is there"; fi
eventually 30 listed
touch /run/bus-wanted
systemctl start dbus.socket dbus.service
wait_state ready registered
is "loads" "$(tried nvidia_peermem)" 1
