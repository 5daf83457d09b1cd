#!/bin/sh
# Says right after a kernel was installed whether the GPUDirect RDMA client will load on it.
# Install as /etc/kernel/postinst.d/zz-peermemd (Debian, Ubuntu), executable; the name sorts behind dkms.
#
# It only warns. With PEERMEMD_KERNEL_HOOK=strict in /etc/default/peermemd-kernel-hook it fails the
# installation of the kernel.
set -u

release=${1:?usage: $0 RELEASE [IMAGE]}
PEERMEMD_KERNEL_HOOK=warn
if [ -r /etc/default/peermemd-kernel-hook ]; then
    # shellcheck source=/dev/null
    . /etc/default/peermemd-kernel-hook
fi
command -v peermemctl >/dev/null || exit 0

if peermemctl --no-pager --quiet preflight --kernel "$release" >&2; then
    exit 0
fi
echo "peermemd: GPUDirect RDMA will not come up on kernel $release; see 'peermemctl preflight --kernel $release'" >&2
[ "$PEERMEMD_KERNEL_HOOK" != strict ]
