# title: nvidia refuses for ever: three attempts, then blocked, re-armed by a PCI event
# needs: deb
# cmdline: peermem_test.faults=nvidia:19:-1:0

settled_in blocked nvidia-probe-failed 8
is "tries" "$(tried nvidia)" 3
absent nvidia_peermem
matches "remedy" "$(property Remedy)" '.+'
is "LastErrno" "$(module_property nvidia LastErrno)" 19

note "the kernel's other users may take one try, ours must follow"
fault nvidia 19 1 0
modprobe fakepci gpus=1 nics=1
wait_state ready registered 60
bound 0001:00:00.0
