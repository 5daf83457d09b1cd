# title: the unit's sandbox is on, and everything works inside it
# needs: deb

wait_state ready registered
process=/proc/$(daemon_pid)/status
is "capabilities" "$(grep CapBnd "$process" | cut -f2)" 0000000400010000
is "no new privileges" "$(grep NoNewPrivs "$process" | cut -f2)" 1
is "seccomp" "$(grep '^Seccomp:' "$process" | cut -f2)" 2
systemd-analyze security --no-pager --threshold=21 peermemd.service >/mnt/results/security.txt ||
	fail "$(tail -1 /mnt/results/security.txt)"
systemd-analyze verify --man=no /usr/lib/systemd/system/peermemd.service /usr/lib/systemd/system/gpudirect-rdma.target
is "evidence listed" "$(evidence listed)" yes
rmmod nvidia_peermem
eventually 30 live nvidia_peermem
