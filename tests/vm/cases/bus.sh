# title: everyone may read, only root may change; names and errors are the documented ones
# needs: deb

nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }

wait_state ready registered
is "State for an unprivileged user" "$(nobody busctl get-property $BUS $ROOT $BUS.Manager State)" 's "ready"'
nobody busctl introspect --no-pager $BUS $ROOT >/mnt/results/introspect.txt
fails_with 'ccess.denied|ermission|not allowed|uthori' nobody busctl call $BUS $ROOT $BUS.Manager Reconcile
fails_with 'ccess.denied|ermission|not allowed|rejected' \
	nobody busctl call $BUS $ROOT org.freedesktop.LogControl1 Whatever
fails_with 'ccess.denied|ermission|not allowed|rejected' \
	nobody busctl call $BUS $ROOT org.freedesktop.DBus.Properties Set ssv $BUS.Manager State s broken
for method in ResetFailed Reload; do
	fails_with 'ccess.denied|ermission|not allowed|uthori' nobody busctl call $BUS $ROOT $BUS.Manager $method
done
tree=$(busctl --no-pager --list tree $BUS)
matches "tree" "$tree" "$ROOT/module/nvidia_peermem"
matches "tree" "$tree" "$ROOT/client/nv_mem"
is "Reconcile" "$(call Reconcile)" 's "ready"'
fails_with '.+' call GetModule s no_such_module
is "GetModule" "$(call GetModule s nvidia-peermem)" "o \"$ROOT/module/nvidia_peermem\""
nobody peermemctl status
