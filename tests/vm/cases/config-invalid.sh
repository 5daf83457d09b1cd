# title: a bad configuration at start: blocked and passive; a bad one at reload: the old one stays
# needs: deb
#> /etc/peermemd/peermemd.toml.d/50-case.toml
#| [policy]
#| mode = "agressive"

settled_in blocked config-invalid
matches "status" "$(property StatusText) $(property Remedy)" '50-case\.toml'
absent nvidia_peermem
if peermemd --check; then fail "--check accepts it"; else is "exit status" $? 78; fi

rm /etc/peermemd/peermemd.toml.d/50-case.toml
systemctl restart peermemd.service
wait_state ready registered
config 50-case <<<'this is not toml'
systemctl reload peermemd.service || true
stays 3 in_state ready registered
is "Mode" "$(property Mode)" enforce
