# title: a reboot takes the state of the boot along with it, and leaves the history
# needs: deb
# boots: 2

file=/var/lib/peermemd/history.jsonl
boot_id=$(cat /proc/sys/kernel/random/boot_id)
wait_state ready registered
is "loads of the client in this boot" "$(tried nvidia_peermem)" 1
grep -qF "\"boot_id\":\"$boot_id\"" "$file" || fail "nothing of this boot in $file"

if [ "$BOOT" = 1 ]; then
	echo "$boot_id" >/var/lib/first-boot
	peermemctl hold --name maintenance --why "a test" --until-reboot
	exit
fi

note "the second boot"
first=$(cat /var/lib/first-boot)
[ "$first" != "$boot_id" ] || fail "it is the same boot"
is "holds" "$(ls -A /run/peermemd/holds)" ""
for part in '"event":"load","subject":"nvidia_peermem","result":"ok"' '"event":"hold","subject":"maintenance","result":"on"'; do
	grep -F "$part" "$file" | grep -qF "\"boot_id\":\"$first\"" || fail "no $part of the first boot in $file"
done
matches "history" "$(peermemctl history --json=short)" "$first"
is "holds that are told" "$(property Holds)" 0
