# title: a client that links to ib_uverbs instead of ib_core is as ready
# needs: deb
# set: uverbs

wait_state ready registered
is "evidence linked" "$(evidence linked)" yes
is "loads" "$(tried nvidia_peermem) $(removed nvidia_peermem)" "1 0"
