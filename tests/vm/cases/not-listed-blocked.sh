# title: not listed after the reload either: blocked, and left alone
# needs: deb
# cmdline: ib_core.test_unlisted=-1

settled_in blocked registration-missing 8
live nvidia_peermem
is "loads" "$(tried nvidia_peermem)" 2
is "removals" "$(removed nvidia_peermem)" 1
is "evidence listed" "$(evidence listed)" no
is "Registered" "$(property Registered)" false
