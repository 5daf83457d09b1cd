# title: a soft RDMA device with an active port, on top of our ib_core
# set: ofed

modprobe -a dummy rdma_rxe
ip link add dummy0 type dummy
ip link set dummy0 up
rdma link add rxe0 type rxe netdev dummy0
eventually 10 grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state
modprobe nvidia-peermem
listed
