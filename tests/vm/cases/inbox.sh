# title: a stack without any peer-memory interface: blocked, with the reason
# needs: deb
# set: inbox

settled_in blocked peer-memory-unsupported
absent nvidia_peermem
matches "remedy" "$(property Remedy)" '.+'
peermemctl status && fail "status exits with 0 while blocked" || is "exit status" $? 3
