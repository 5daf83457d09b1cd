# title: renamed files: the client is reached only through an install line, and has its own name again
# set: debian
#> /etc/modprobe.d/nvidia.conf
#| alias nvidia nvidia-current
#| alias nvidia-uvm nvidia-current-uvm
#| install nvidia-peermem modprobe nvidia ; modprobe -i nvidia-current-peermem $CMDLINE_OPTS

modprobe nvidia-peermem
live nvidia
live nvidia_peermem
listed
[ ! -e "/lib/modules/$(uname -r)/updates/nvidia-peermem.ko" ]
