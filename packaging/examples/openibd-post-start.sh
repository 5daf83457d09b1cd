#!/bin/sh
# For openibd's own hook after it has started, the counterpart of openibd-pre-stop.sh:
#
#     install -m 0755 /usr/share/doc/peermemd/examples/openibd-post-start.sh /etc/infiniband/post-start-hook.sh
#
# Lifts the hold; the daemon brings the client back. That there is no hold is no failure.
# It is a copy, and may be left when the package is gone.
command -v peermemctl >/dev/null || exit 0
exec peermemctl --quiet unhold --name openibd
