# title: observe mode: the same states and a full plan, and nothing is ever loaded or removed
# needs: deb
#> /etc/peermemd/peermemd.toml.d/50-case.toml
#| [policy]
#| mode = "observe"

plan() { property Plan; }
plan_names() { [[ $(plan) == *"$1"* ]]; }

eventually 30 plan_names nvidia_peermem
is "Mode" "$(property Mode)" observe
stays 5 absent nvidia_peermem
absent nvidia
is "tries" "$(tried nvidia) $(tried nvidia_peermem)" "0 0"
peermemctl plan
modprobe -a mlx5_ib nvidia-peermem
wait_state ready registered
is "Plan" "$(plan)" 0
rmmod nvidia_peermem
eventually 30 plan_names nvidia_peermem
stays 5 absent nvidia_peermem
