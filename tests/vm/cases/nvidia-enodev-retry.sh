# title: nvidia refuses twice with ENODEV, then loads: visible retries, then ready
# needs: deb
# cmdline: peermem_test.faults=nvidia:19:2:0

wait_state ready registered 60
is "tries" "$(tried nvidia)" 3
matches "history" "$(history)" nvidia
[ "$(property FailureCount)" -ge 2 ]
