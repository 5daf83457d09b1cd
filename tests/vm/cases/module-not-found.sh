# title: no client file at all: named, and ready once a build puts it there
# needs: deb
#> /etc/systemd/system/build.service
#| [Unit]
#| DefaultDependencies=no
#| Before=systemd-modules-load.service systemd-udev-trigger.service
#| [Service]
#| Type=oneshot
#| ExecStart=/bin/sh -c 'rm /lib/modules/*/updates/nvidia-peermem.ko && depmod'
#> /etc/systemd/system/sysinit.target.d/50-case.conf
#| [Unit]
#| Wants=build.service

settled_in blocked module-not-found
use_client core
wait_state ready registered
listed
