# title: a client built without the RDMA stack: blocked by name, and ready once the file is replaced
# needs: deb
# set: bad-stub

settled_in blocked built-without-peer-memory
absent nvidia_peermem
matches "remedy" "$(property Remedy)" '.+'
use_client core
wait_state ready registered
