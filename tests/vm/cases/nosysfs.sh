# title: a stack without memory_peers: ready on the other evidence, and what is missing is said
# needs: deb
# set: nosysfs

wait_state ready registered
is "evidence live" "$(evidence live)" yes
is "evidence linked" "$(evidence linked)" yes
is "evidence listed" "$(evidence listed)" not-applicable
matches "advisories" "$(property Advisories)" 'invisible-to-old-nccl'
is "loads" "$(tried nvidia_peermem) $(removed nvidia_peermem)" "1 0"
