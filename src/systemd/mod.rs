//! What systemd is told: readiness, status, watchdog; and the journal.
