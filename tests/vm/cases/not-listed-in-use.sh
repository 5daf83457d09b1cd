# title: not listed but in use: never removed while it is
# needs: deb
# cmdline: ib_core.test_unlisted=1
#> /etc/systemd/system/job.service
#| [Unit]
#| Before=peermemd.service
#| [Service]
#| Type=oneshot
#| RemainAfterExit=yes
#| ExecStart=/sbin/modprobe nvidia-peermem
#| ExecStart=/bin/sh -c 'echo nv_mem:1 >/sys/module/ib_core/parameters/test_pins'
#> /etc/systemd/system/multi-user.target.d/50-case.conf
#| [Unit]
#| Wants=job.service

settled_in blocked registration-missing 8
live nvidia_peermem
is "removals" "$(removed nvidia_peermem)" 0
unpin nv_mem
wait_state ready registered 60
listed
