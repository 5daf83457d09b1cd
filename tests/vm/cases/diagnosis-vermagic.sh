# title: a client built for another kernel configuration: blocked by name, and ready once the file is replaced
# needs: deb
# set: bad-vermagic

settled_in blocked vermagic-mismatch
absent nvidia_peermem
matches "remedy" "$(property Remedy)" '.+'
use_client core
wait_state ready registered
