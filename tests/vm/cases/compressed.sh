# title: a compressed client is loaded, and recognised as the one that is loaded
# needs: deb

tree=/lib/modules/$(uname -r)/updates
systemctl stop peermemd.service
modprobe -r nvidia_peermem || true
rm "$tree/$CLIENT_FILE"
cp "/lib/modules/variants/core-xz/$CLIENT_FILE.xz" "$tree/"
depmod
systemctl start peermemd.service
wait_state ready registered
matches "file" "$(module_property nvidia_peermem FileName)" '\.ko\.xz$'
matches "version" "$(module_property nvidia_peermem ModuleVersion)" '570\.124\.06'
is "advisories" "$(property Advisories)" 0
rmmod nvidia_peermem
eventually 30 live nvidia_peermem
wait_state ready registered
