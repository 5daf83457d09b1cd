# title: nothing loaded, no devices: the daemon brings the stack up in order and proves it
# needs: deb

wait_state ready registered
is "order" "$(tac /proc/modules | cut -d' ' -f1 | grep -xE 'mlx5_core|ib_core|ib_uverbs|mlx5_ib|nvidia|nvidia_peermem' | xargs)" \
	"mlx5_core ib_core ib_uverbs mlx5_ib nvidia nvidia_peermem"
listed
is "owner" "$(peer version)" 570.124.06
is "Registered" "$(property Registered)" true
for id in live linked listed owner; do
	is "evidence $id" "$(evidence $id)" yes
done
is "Mode" "$(property Mode)" enforce
is "Backend" "$(property Backend)" kmod
is "driver" "$(property NvidiaDriverVersion) $(property NvidiaDriverFlavour)" "570.124.06 open"
is "client" "$(module_property nvidia_peermem LoadState) $(module_property nvidia_peermem Role)" "live peer-client"
is "tries" "$(tried nvidia) $(tried nvidia_peermem)" "1 1"

note "what a person sees"
active peermemd.service
status=$(systemctl status --no-pager peermemd.service)
matches "systemctl status" "$status" 'Status: "nvidia_peermem is loaded and registered'
peermemctl
peermemctl --json=short status
[ -s /run/peermemd/state.json ]
is "warnings" "$(daemon_log --priority=warning)" ""
