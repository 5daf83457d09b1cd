# title: a whole run asks nothing of systemd but to look and to stop the predecessor's unit
# needs: deb
# timeout: 180
#> /etc/systemd/system/nv_peer_mem.service
#| [Unit]
#| Before=peermemd.service
#| [Service]
#| Type=oneshot
#| RemainAfterExit=yes
#| ExecStart=/sbin/modprobe nv_peer_mem
#> /etc/systemd/system/openibd.service
#| [Service]
#| Type=oneshot
#| RemainAfterExit=yes
#| ExecStart=/bin/true
#| ExecStop=/bin/sh -c 'rmmod nvidia_peermem; sleep 1'

wait_state ready registered
trace=/mnt/results/systemd-calls.txt
dbus-monitor --system "type='method_call',destination='org.freedesktop.systemd1'" >"$trace" 2>&1 &
monitor=$!
eventually 10 test -s "$trace"

note "the daemon starts, repairs, retires the predecessor, waits for a unit, and reads its configuration again"
systemctl restart peermemd.service
wait_state ready registered
rmmod nvidia_peermem
systemctl start nv_peer_mem.service || true
eventually 30 live nvidia_peermem
wait_state ready registered
systemctl start openibd.service
systemctl restart openibd.service
eventually 30 live nvidia_peermem
wait_state ready registered
systemctl kill --signal=HUP peermemd.service
sleep 1
call Reconcile
kill "$monitor"

grep -q 'member=StopUnit' "$trace"
if grep -E 'member=(Reload|Reexecute|Enable|Disable|Reenable|Mask|Unmask|Preset|Link|Revert|SetDefault|AddDependency|SetUnitProperties|SetEnvironment|Set)[A-Za-z]*$' "$trace"; then
	fail "something of systemd was changed"
fi
# Ours are those connections that subscribed; systemctl does not.
for sender in $(grep 'member=Subscribe$' "$trace" | grep -o 'sender=:[0-9.]*' | sort -u); do
	calls=$(grep "$sender " "$trace" | grep -o 'member=[A-Za-z]*' | sort -u | cut -d= -f2 | xargs)
	note "$sender: $calls"
	for call in $calls; do
		matches "a call of the daemon" "$call" '^(Subscribe|LoadUnit|GetUnit|StopUnit|GetAll|Get)$'
	done
done
