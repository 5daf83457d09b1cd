#!/bin/sh
# For openibd's own hook before it stops, which its script runs also for "reload" and when it is
# called directly, where no unit can be ordered around it:
#
#     install -m 0755 /usr/share/doc/peermemd/examples/openibd-pre-stop.sh /etc/infiniband/pre-stop-hook.sh
#
# Takes the client out and holds. If a job uses it this fails and says who, and so does openibd.
# The hold is a file, so it is kept when this script, its connection or the daemon ends.
# It is a copy, and may be left when the package is gone.
command -v peermemctl >/dev/null || exit 0
exec peermemctl --quiet stand-down --hold --name openibd --why "openibd is being stopped"
