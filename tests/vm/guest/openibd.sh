# Helpers for the cases that restart the RDMA stack by a unit like the vendor's.

# The unit as the vendor ships it, started.
install_openibd() {
	cat >/etc/systemd/system/openibd.service <<-'UNIT'
		[Unit]
		Description=openibd
		# It is restarted more often than anybody would.
		StartLimitIntervalSec=0
		[Service]
		Type=oneshot
		RemainAfterExit=yes
		ExecStart=/bin/sh /mnt/tests/guest/openibd start
		ExecStop=/bin/sh /mnt/tests/guest/openibd stop
		ExecReload=/bin/sh /mnt/tests/guest/openibd restart
		[Install]
		WantedBy=sysinit.target
	UNIT
	systemctl daemon-reload
	systemctl enable --now openibd.service
}

# How often it has refused, and how often it went down as a whole.
openibd_said() { # TEXT
	journalctl --boot --unit=openibd.service --no-pager --output=cat | grep -cF "$1" || true
}
refusals() { openibd_said 'ib_core is in use by: nvidia_peermem'; }
restarts() { openibd_said 'Unloading HCA driver: [OK]'; }
