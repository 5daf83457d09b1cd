# title: twenty driver upgrades by dpkg, whose scripts take the whole stack out, are never disturbed
# needs: deb
# group: proof
# timeout: 900

TREE=/lib/modules/$(uname -r)/updates

# One more build of a module: another version and another build-id of the same length.
another_build() { # FILE VERSION BYTE
	local note
	LC_ALL=C sed -i "s/570\.124\.[0-9][0-9]/$2/g" "$1"
	note=$(LC_ALL=C grep -obUaP '\x14\x00\x00\x00\x03\x00\x00\x00GNU\x00' "$1" | head -1 | cut -d: -f1)
	# Ten bytes into the identity itself.
	printf '%b' "$3" | dd of="$1" bs=1 seek=$((note + 22)) conv=notrunc status=none
}

build_package() { # VERSION BYTE
	local root=/tmp/package-$1
	mkdir -p "$root/DEBIAN" "$root/usr$TREE"
	cp "$TREE/nvidia.ko" "$TREE/nvidia-uvm.ko" "$TREE/nvidia-peermem.ko" "$root/usr$TREE/"
	for file in "$root/usr$TREE"/*.ko; do another_build "$file" "$1" "$2"; done
	printf 'Package: standin-driver\nVersion: %s\nArchitecture: all\nMaintainer: Tests <tests@example.org>\nDescription: driver\n' \
		"$1" >"$root/DEBIAN/control"
	cat >"$root/DEBIAN/preinst" <<-'SCRIPT'
		#!/bin/sh -e
		for module in nvidia_peermem nvidia_uvm nvidia mlx5_ib mlx5_core rdma_ucm rdma_cm ib_uverbs ib_core; do
			[ ! -d /sys/module/$module ] || rmmod $module || [ $module = ib_core ]
			sleep 0.2
		done
		sleep 2
		for module in nvidia_peermem nvidia; do
			[ ! -d /sys/module/$module ] || { echo "$module came back"; exit 1; }
		done
	SCRIPT
	cat >"$root/DEBIAN/postinst" <<-'SCRIPT'
		#!/bin/sh -e
		depmod
		modprobe mlx5_ib
		modprobe nvidia
		sleep 2
		[ ! -d /sys/module/nvidia_peermem ] || { echo "nvidia_peermem was loaded into the upgrade"; exit 1; }
	SCRIPT
	chmod 755 "$root/DEBIAN/preinst" "$root/DEBIAN/postinst"
	dpkg-deb --build -Znone "$root" "/tmp/$1.deb" >/dev/null
}

wait_state ready registered
build_package 570.124.07 '\x07'
build_package 570.124.08 '\x08'

for round in $(seq 20); do
	version=570.124.0$((7 + round % 2))
	before=$(property AttemptCount)
	dpkg --install "/tmp/$version.deb" 2>&1 | tail -3
	is "dpkg in round $round" "${PIPESTATUS[0]}" 0
	eventually 30 live nvidia_peermem
	wait_state ready registered
	is "version in round $round" "$(cat /sys/module/nvidia_peermem/version)" "$version"
	is "driver in round $round" "$(cat /sys/module/nvidia/version)" "$version"
	is "steps in round $round" "$(property AttemptCount)" $((before + 1))
	matches "history" "$(history)" '"Actor" s "dpkg"'
done
