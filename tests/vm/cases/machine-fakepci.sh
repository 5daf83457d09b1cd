# title: udev loads nvidia and mlx5_core for devices in memory; they come and go
# set: ofed
# cmdline: fakepci.gpus=2 fakepci.nics=1

eventually 20 live nvidia
eventually 20 live mlx5_core
eventually 10 bound 0001:00:00.0
is "GPU class" "$(cat /sys/bus/pci/devices/0001:00:01.0/class)" 0x030200
is "NIC vendor" "$(cat /sys/bus/pci/devices/0001:00:10.0/vendor)" 0x15b3
gpus 1
[ -d /sys/bus/pci/devices/0001:00:00.0 ]
[ ! -d /sys/bus/pci/devices/0001:00:01.0 ]
gpus 2
eventually 10 bound 0001:00:01.0
rmmod nvidia
if bound 0001:00:00.0; then fail "bound without a driver"; fi
gpus 0
[ ! -d /sys/bus/pci/devices/0001:00:00.0 ]
nics 0
rmmod fakepci
