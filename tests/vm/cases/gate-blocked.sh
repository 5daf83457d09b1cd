# title: the gate opens as well when the stack cannot come up; only a strict consumer stays out
# needs: deb
# set: inbox
#> /etc/systemd/system/job.service
#| [Unit]
#| Wants=gpudirect-rdma.target
#| After=gpudirect-rdma.target
#| [Service]
#| Type=oneshot
#| RemainAfterExit=yes
#| ExecStart=/bin/true
#> /etc/systemd/system/strict.service
#| [Service]
#| Type=oneshot
#| ExecStartPre=/usr/bin/peermemctl wait --for=ready --timeout=3
#| ExecStart=/bin/true
#> /etc/systemd/system/multi-user.target.d/50-case.conf
#| [Unit]
#| Wants=job.service

eventually 60 active job.service
in_state blocked built-without-peer-memory
if systemctl start strict.service; then fail "the strict unit started"; fi
