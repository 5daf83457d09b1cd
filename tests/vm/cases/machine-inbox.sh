# title: Debian's own RDMA stack: no peer memory, and the client that was built for it fails silently
# set: inbox

modprobe ib_uverbs
if grep -q ' ib_register_peer_memory_client' /proc/kallsyms; then fail "the stock stack has the symbol"; fi
modprobe nvidia
mark_log
fails_with 'Invalid argument' modprobe nvidia-peermem
absent nvidia_peermem
if logged .; then fail "the stub said something: $(dmesg | tail -1)"; fi
