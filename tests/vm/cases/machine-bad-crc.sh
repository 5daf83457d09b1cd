# title: a client built for another RDMA stack is refused by its symbol version
# set: bad-crc

fails_with 'Invalid argument' modprobe nvidia-peermem
logged 'nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client'
logged 'nvidia_peermem: Unknown symbol ib_register_peer_memory_client \(err -22\)'
