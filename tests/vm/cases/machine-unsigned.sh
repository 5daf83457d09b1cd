# title: with signatures enforced the kernel takes Debian's modules and none of ours
# set: inbox
# cmdline: module.sig_enforce=1

modprobe mlx5_ib
live mlx5_ib
fails_with 'Key was rejected by service' modprobe nvidia
logged 'Loading of unsigned module is rejected|Loading of module with unavailable key is rejected'
