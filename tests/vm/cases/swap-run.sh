# title: twenty driver installations without any lock, with a trial of the new build, are never disturbed
# needs: deb
# group: proof
# timeout: 900

TREE=/lib/modules/$(uname -r)/updates

another_build() { # FILE VERSION BYTE
	local note
	LC_ALL=C sed -i "s/570\.124\.[0-9][0-9]/$2/g" "$1"
	note=$(LC_ALL=C grep -obUaP '\x14\x00\x00\x00\x03\x00\x00\x00GNU\x00' "$1" | head -1 | cut -d: -f1)
	printf '%b' "$3" | dd of="$1" bs=1 seek=$((note + 22)) conv=notrunc status=none
}

out() { # MODULE…: must go, and stay away
	local module
	for module in "$@"; do
		[ ! -d "/sys/module/$module" ] || rmmod "$module"
	done
}

# As the vendor's .run file goes about it: everything out, the new build on trial, out again,
# installed, loaded. There is no lock, no unit and no process whose name says anything.
install_driver() { # DIRECTORY
	out nvidia_peermem nvidia_uvm nvidia
	stays 2 absent nvidia
	insmod "$1/nvidia.ko"
	stays 3 absent nvidia_peermem
	out nvidia
	cp "$1"/*.ko "$TREE/"
	depmod
	stays 2 absent nvidia
	modprobe nvidia
}

wait_state ready registered
for build in 7 8; do
	mkdir -p "/tmp/build-$build"
	cp "$TREE/nvidia.ko" "$TREE/nvidia-uvm.ko" "$TREE/nvidia-peermem.ko" "/tmp/build-$build/"
	for file in "/tmp/build-$build"/*.ko; do another_build "$file" "570.124.0$build" "\\x0$build"; done
done

for round in $(seq 20); do
	build=$((7 + round % 2))
	before=$(property AttemptCount)
	install_driver "/tmp/build-$build"
	eventually 30 live nvidia_peermem
	wait_state ready registered
	note "round $round: $(cat /sys/module/nvidia_peermem/version)"
	is "version in round $round" "$(cat /sys/module/nvidia_peermem/version)" "570.124.0$build"
	is "steps in round $round" "$(property AttemptCount)" $((before + 1))
done
