#!/bin/sh
# Says right after a kernel was installed whether the GPUDirect RDMA client will load on it.
# Install as /etc/kernel/postinst.d/zz-peermemd (Debian, Ubuntu), executable; the name sorts behind dkms.
#
# It only warns, unless /etc/default/peermemd-kernel-hook says PEERMEMD_KERNEL_HOOK=strict.
set -u

release=${1:?usage: $0 RELEASE [IMAGE]}
[ -x /usr/lib/peermemd/kernel-check ] || exit 0
exec /usr/lib/peermemd/kernel-check "$release"
