# title: a client built for another RDMA stack: blocked by name, and ready once the file is replaced
# needs: deb
# set: bad-crc

settled_in blocked symbol-version-mismatch
absent nvidia_peermem
matches "remedy" "$(property Remedy)" '.+'
use_client core
wait_state ready registered
