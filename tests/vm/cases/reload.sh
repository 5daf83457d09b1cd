# title: a good configuration is taken over by a reload, a bad one fails the reload and changes nothing
# needs: deb

quiet() { [ "$(property Mode)" = enforce ] && in_state ready registered; }

observing() { [ "$(property Mode)" = observe ]; }

wait_state ready registered
before=$(daemon_pid)
config 50-case <<<$'[policy]\nmode = "agressive"'
fails_with '.+' systemctl reload peermemd.service
matches "journal" "$(daemon_log)" '50-case\.toml'
stays 3 quiet
active peermemd.service

config 50-case <<<$'[policy]\nmode = "observe"'
systemctl reload peermemd.service
eventually 20 observing
in_state ready registered
is "process" "$(daemon_pid)" "$before"
rmmod nvidia_peermem
wait_state waiting
stays 4 absent nvidia_peermem

config 50-case <<<$'[timing]\nload_stuck = "9s"'
systemctl reload peermemd.service
wait_state ready registered
fails_with '.+' call Reload extra
is "Reload" "$(call Reload)" ""
