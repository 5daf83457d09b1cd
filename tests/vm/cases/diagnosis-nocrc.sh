# title: a client without the symbol's version: blocked by name, and ready once the file is replaced
# needs: deb
# set: bad-nocrc

settled_in blocked symbol-version-missing
absent nvidia_peermem
matches "remedy" "$(property Remedy)" '.+'
use_client core
wait_state ready registered
