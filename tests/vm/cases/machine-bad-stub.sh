# title: a client built without the RDMA stack fails silently beside a stack that has it
# set: bad-stub

modprobe ib_core
modprobe nvidia
mark_log
fails_with 'Invalid argument' modprobe nvidia-peermem
if logged .; then fail "the stub said something"; fi
use_client core
modprobe nvidia-peermem
listed
