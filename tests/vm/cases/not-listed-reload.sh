# title: the client is live but the stack does not list it: one ordered reload
# needs: deb
# cmdline: ib_core.test_unlisted=1

wait_state ready registered 60
listed
is "loads" "$(tried nvidia_peermem)" 2
is "removals" "$(removed nvidia_peermem)" 1
