# title: a stack without any peer-memory interface: blocked, by the client's fault or by the stack's
# needs: deb
# set: inbox

note "the stub that a driver build makes of such a stack"
settled_in blocked built-without-peer-memory
absent nvidia_peermem
matches "status" "$(property StatusText)" 'no peer-memory interface'
matches "remedy" "$(property Remedy)" '.+'
peermemctl status && fail "status exits with 0 while blocked" || is "exit status" $? 3

note "a client that was built for another stack, on this one"
use_client core
settled_in blocked peer-memory-unsupported
absent nvidia_peermem
matches "status" "$(property StatusText)" ib_register_peer_memory_client
matches "remedy" "$(property Remedy)" '.+'
