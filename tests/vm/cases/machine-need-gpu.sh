# title: nvidia refuses to load without a GPU, where it is told to be like the real one
# set: ofed
#> /etc/modprobe.d/nvidia.conf
#| options nvidia need_gpu=1 flavour=proprietary

fails_with 'No such device' modprobe nvidia
logged 'NVRM: No NVIDIA GPU found'
modprobe fakepci gpus=1
eventually 20 live nvidia
matches "version file" "$(head -1 /proc/driver/nvidia/version)" 'NVIDIA UNIX x86_64 Kernel Module  570\.124\.06 '
