# title: a unit ordered after the target starts when the stack is ready, and no restart of ours touches it
# needs: deb
# cmdline: peermem_test.faults=nvidia:0:1:8000
#> /etc/systemd/system/job.service
#| [Unit]
#| Wants=gpudirect-rdma.target
#| After=gpudirect-rdma.target
#| [Service]
#| Type=oneshot
#| RemainAfterExit=yes
#| ExecStart=/bin/cp /sys/module/nvidia_peermem/initstate /run/job-saw
#> /etc/systemd/system/multi-user.target.d/50-case.conf
#| [Unit]
#| Wants=job.service

started() { systemctl show --property=ActiveEnterTimestampMonotonic --value job.service; }

eventually 40 active job.service
is "client when the job started" "$(cat /run/job-saw)" live
active gpudirect-rdma.target
before=$(started)
systemctl restart peermemd.service
wait_state ready registered
kill -9 "$(daemon_pid)"
sleep 1
wait_state ready registered
systemctl stop peermemd.service
active gpudirect-rdma.target
active job.service
is "start of the job" "$(started)" "$before"
