# title: a client built for a kernel with other options has the wrong format
# set: bad-vermagic

fails_with 'Exec format error' modprobe nvidia-peermem
logged "nvidia_peermem: version magic '.*SMP PREEMPT .*' should be '.*SMP preempt "
