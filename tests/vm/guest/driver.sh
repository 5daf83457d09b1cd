# Helpers for the cases that upgrade the driver: more builds of the stand-ins, and three ways to put
# one in place. Whoever loads something into an upgrade makes it fail.

TREE=/lib/modules/$(uname -r)/updates
DRIVER="nvidia.ko nvidia-uvm.ko nvidia-peermem.ko"

# One more build of a module: another version and another build-id of the same length.
another_build() { # FILE N
	local note
	LC_ALL=C sed -i "s/570\.124\.[0-9][0-9]/570.124.0$2/g" "$1"
	note=$(LC_ALL=C grep -obUaP '\x14\x00\x00\x00\x03\x00\x00\x00GNU\x00' "$1" | head -1 | cut -d: -f1)
	# Ten bytes into the identity itself.
	printf '%b' "\\x0$2" | dd of="$1" bs=1 seek=$((note + 22)) conv=notrunc status=none
}

builds() { # N…: makes /tmp/build-N of each
	local build file
	for build in "$@"; do
		mkdir -p "/tmp/build-$build"
		for file in $DRIVER; do
			cp "$TREE/$file" "/tmp/build-$build/"
			another_build "/tmp/build-$build/$file" "$build"
		done
	done
}

packages() { # N…: makes /tmp/driver-N.deb of each build
	local build root
	for build in "$@"; do
		root=/tmp/package-$build
		mkdir -p "$root/DEBIAN" "$root/usr$TREE"
		cp "/tmp/build-$build"/*.ko "$root/usr$TREE/"
		printf '%s\n' "Package: standin-driver" "Version: 570.124.0$build" "Architecture: all" \
			"Maintainer: Tests <tests@example.org>" "Description: driver" >"$root/DEBIAN/control"
		cat >"$root/DEBIAN/preinst" <<-'SCRIPT'
			#!/bin/sh -e
			for module in nvidia_peermem nvidia_uvm nvidia mlx5_ib mlx5_core rdma_ucm rdma_cm ib_uverbs ib_core; do
				[ ! -d /sys/module/$module ] || rmmod $module
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
		dpkg-deb --build -Znone "$root" "/tmp/driver-$build.deb" >/dev/null
	done
}

# As the vendor's .run file goes about it: everything out, the new build on trial, out again,
# installed, loaded. There is no lock, no unit and no process whose name says anything.
run_installer() ( # N
	set +E
	trap - ERR
	out() { # MODULE…: go, and have to stay away
		for module in "$@"; do [ ! -d "/sys/module/$module" ] || rmmod "$module" || return; done
	}
	stays_away() { # SECONDS MODULE
		for _ in $(seq $(($1 * 4))); do
			[ ! -d "/sys/module/$2" ] || { echo "$2 came back"; return 1; }
			sleep 0.25
		done
	}
	out nvidia_peermem nvidia_uvm nvidia && stays_away 2 nvidia &&
		insmod "/tmp/build-$1/nvidia.ko" && stays_away 3 nvidia_peermem && out nvidia &&
		cp "/tmp/build-$1"/*.ko "$TREE/" && depmod && stays_away 2 nvidia && modprobe nvidia
)

runs_build() { # N: driver and client are of that build
	is "driver" "$(cat /sys/module/nvidia/version)" "570.124.0$1"
	is "client" "$(cat /sys/module/nvidia_peermem/version)" "570.124.0$1"
}
