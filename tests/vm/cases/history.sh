# title: the history is a file of JSON lines that outlives daemon and boot
# needs: deb

file=/var/lib/peermemd/history.jsonl
wait_state ready registered
rmmod nvidia_peermem
eventually 30 live nvidia_peermem
wait_state ready registered
for part in '"event":"load","subject":"mlx5_core","result":"ok"' '"event":"vanished","subject":"nvidia_peermem"' \
	'"event":"state"' "\"boot_id\":\"$(cat /proc/sys/kernel/random/boot_id)\""; do
	grep -qF "$part" "$file" || fail "no $part in $file"
done
# The program is named if it was still there to be looked at.
grep -qE '"event":"vanished".*"actor":"(rmmod|outside)' "$file" || fail "nobody is named in $file"
is "mode" "$(stat --format=%a "$file")" 644
if grep -qv '^{.*}$' "$file"; then fail "a line of $file is not an object"; fi

note "as after a reboot: entries of another boot, and the last line cut off"
systemctl stop peermemd.service
sed -i 's/"boot_id":"[^"]*"/"boot_id":"another"/' "$file"
printf '{"timestamp":17' >>"$file"
lines=$(grep -c '^{.*}$' "$file")
systemctl start peermemd.service
wait_state ready registered
matches "history" "$(history)" mlx5_core
entries=$(peermemctl history --json=short | grep -o '"event"' | wc -l)
[ "$entries" -ge "$lines" ] || fail "$entries entries, there were $lines"
