# title: Debian's renamed files: the client is loaded through its install line, and repaired
# needs: deb
# set: debian
#> /etc/modprobe.d/nvidia.conf
#| alias nvidia nvidia-current
#| alias nvidia-uvm nvidia-current-uvm
#| install nvidia-peermem modprobe nvidia ; modprobe -i nvidia-current-peermem $CMDLINE_OPTS

wait_state ready registered
listed
matches "file" "$(module_property nvidia_peermem FileName)" 'nvidia-current-peermem\.ko$'
rmmod nvidia_peermem
eventually 30 live nvidia_peermem
wait_state ready registered
