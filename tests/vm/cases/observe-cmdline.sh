# title: observe mode from the kernel command line
# needs: deb
# cmdline: peermemd.mode=observe

eventually 30 test -S /run/dbus/system_bus_socket
eventually 30 active peermemd.service
is "Mode" "$(property Mode)" observe
stays 5 absent nvidia
