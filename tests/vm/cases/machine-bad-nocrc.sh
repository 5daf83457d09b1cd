# title: a client without the symbol's version is refused
# set: bad-nocrc

modprobe -a ib_core nvidia
fails_with 'Invalid argument' modprobe nvidia-peermem
logged 'nvidia_peermem: no symbol version for ib_register_peer_memory_client'
absent nvidia_peermem
