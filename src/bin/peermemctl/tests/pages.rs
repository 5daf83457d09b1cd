//! What the pages look like, to the character.

use insta::assert_snapshot;
use peermemd::dbus::client::Snapshot;
use peermemd::model::HistoryEntry;

use super::samples;
use crate::failure::Failure;
use crate::screen::Screen;
use crate::view;

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

fn page(snapshot: &Snapshot) -> String {
    plain(&view::status::render(snapshot, None, &samples::screen()))
}

/// Escape sequences so that they can be read.
fn coloured(text: &str) -> String {
    text.replace('\x1b', "␛")
}

fn down() -> Failure {
    let next = "Start it with: systemctl start peermemd";
    Failure::new("peermemd is not running", "peermemd.service is inactive", next)
}

#[test]
fn a_ready_node_shows_its_proof() {
    assert_snapshot!(page(&samples::ready()), @r"
    ● GPUDirect RDMA: ready (registered)
         Since: Mon 2026-11-16 09:14:36 UTC; 2h 13min ago
           Why: nvidia_peermem is loaded and registered with ib_core.
     Transport: peermem (in place)
        Driver: nvidia 570.124.06 (open), RDMA stack MLNX_OFED 24.10-1.1.4.0
       Regions: 12 registered now by nv_mem (570.124.06), 48.0 GiB
       Modules: mlx5_core       live  24.10-1.1.4  used by mlx5_ib
                ib_core         live  24.10-1.1.4  used by ib_ipoib, ib_umad,
                                                   ib_uverbs, mlx5_ib,
                                                   nvidia_peermem, rdma_cm
                mlx5_ib         live  24.10-1.1.4
                ib_uverbs       live  24.10-1.1.4  used by mlx5_ib, rdma_ucm
                nvidia          live  570.124.06   used by nvidia_peermem,
                                                   nvidia_uvm
                nvidia_peermem  live  570.124.06   in use (12)
      Evidence: ✓ live            initstate of nvidia_peermem is live
                ✓ linked          nvidia_peermem is a holder of ib_core
                ✓ listed          /sys/kernel/mm/memory_peers/nv_mem
                ✓ owner           its version is that of the GPU driver
                ? kernel-log      /dev/kmsg could not be read
                ✓ memory-regions  the counters of nv_mem
                ✗ active-port     mlx5_0/1 and mlx5_1/1 are not ACTIVE
    Advisories: ! PCIe access control redirects traffic between GPU and network
                  card: 0000:17:00.0. See the platform's documentation on ACS;
                  nothing is changed by peermemd. (acs-redirect)
       Checked: 14s ago by peermemd 0.1.0, kernel 6.8.0-45-generic
    ");
}

#[test]
fn a_blocked_node_says_why_and_what_to_do() {
    assert_snapshot!(page(&samples::blocked()), @r"
    × GPUDirect RDMA: blocked (symbol-version-mismatch)
         Since: Mon 2026-11-16 11:26:43 UTC; 1min 1s ago
           Why: nvidia_peermem was built against another RDMA stack:
                ib_register_peer_memory_client has CRC 0x8a2f41c0 in ib_core and
                0x11d07e93 in the module.
    What to do: Rebuild the GPU driver's modules against the installed RDMA stack,
                for instance with 'dkms install --force nvidia/570.124.06'.
     Transport: peermem (not in place)
        Driver: nvidia 570.124.06 (open), RDMA stack MLNX_OFED 24.10-1.1.4.0
       Modules: mlx5_core       live    24.10-1.1.4  used by mlx5_ib
                ib_core         live    24.10-1.1.4  used by ib_ipoib, ib_umad,
                                                     ib_uverbs, mlx5_ib, rdma_cm
                mlx5_ib         live    24.10-1.1.4
                ib_uverbs       live    24.10-1.1.4  used by mlx5_ib, rdma_ucm
                nvidia          live    570.124.06   used by nvidia_uvm
                nvidia_peermem  absent  570.124.06   last try:
                                                     symbol-version-mismatch
                                                     (EINVAL)
      Evidence: ✗ live    nvidia_peermem is not loaded
                - linked  nothing to look at
       Checked: 14s ago by peermemd 0.1.0, kernel 6.8.0-45-generic
    ");
}

#[test]
fn a_held_node_says_by_whom_and_until_when() {
    assert_snapshot!(page(&samples::held()), @r"
    ↻ GPUDirect RDMA: waiting (held)
         Since: Mon 2026-11-16 11:17:44 UTC; 10min ago
           Why: Held by operator: new firmware for the network cards.
    What to do: It goes on when the hold ends; 'peermemctl' lists who holds it.
          Held: operator (hold), by root: new firmware for the network cards
                  nothing is loaded or removed, since 2026-11-16 11:17:44 (10min
                  ago), until 2026-11-16 12:27:44
                openibd.service (automatic), by peermemd: a stop job is running
                  nothing is loaded or removed, since 2026-11-16 11:27:39 (5s ago),
                  until that is over
          Plan: 1. load nvidia_peermem
     Transport: peermem (not in place)
        Driver: nvidia 570.124.06 (open), RDMA stack MLNX_OFED 24.10-1.1.4.0
       Modules: mlx5_core       live    24.10-1.1.4  used by mlx5_ib
                ib_core         live    24.10-1.1.4  used by ib_ipoib, ib_umad,
                                                     ib_uverbs, mlx5_ib, rdma_cm
                mlx5_ib         live    24.10-1.1.4
                ib_uverbs       live    24.10-1.1.4  used by mlx5_ib, rdma_ucm
                nvidia          live    570.124.06   used by nvidia_uvm
                nvidia_peermem  absent  570.124.06
       Checked: 14s ago by peermemd 0.1.0, kernel 6.8.0-45-generic
    ");
}

#[test]
fn a_node_without_gpu_is_no_alarm() {
    let text = view::status::render(&samples::not_applicable(), None, &samples::screen());
    assert_snapshot!(coloured(&text), @r"
    ␛[2m○␛[0m GPUDirect RDMA: ␛[1mnot-applicable␛[0m (no-gpu)
         Since: Mon 2026-11-16 08:27:44 UTC; 3h ago
           Why: There is no GPU for GPUDirect RDMA on this node: no NVIDIA device on
                PCI.
     Transport: peermem (not in place)
        Driver: RDMA stack inbox
       Modules: mlx5_core       ␛[32mlive␛[0m       24.10-1.1.4  ␛[2mused by mlx5_ib␛[0m
                ib_core         ␛[32mlive␛[0m       24.10-1.1.4  ␛[2mused by ib_ipoib, ib_umad,␛[0m
                                                        ␛[2mib_uverbs, mlx5_ib, rdma_cm␛[0m
                mlx5_ib         ␛[32mlive␛[0m       24.10-1.1.4
                ib_uverbs       ␛[32mlive␛[0m       24.10-1.1.4  ␛[2mused by mlx5_ib, rdma_ucm␛[0m
                nvidia          ␛[2mnot-found␛[0m
                nvidia_peermem  ␛[2mnot-found␛[0m
       Checked: 14s ago by peermemd 0.1.0, kernel 6.8.0-45-generic
    ");
}

#[test]
fn a_stuck_load_on_a_simulated_node_shows_both() {
    let text = view::status::render(&samples::stuck(), None, &samples::screen());
    assert_snapshot!(coloured(&text), @r"
    ␛[30m␛[43mSIMULATED NODE: all of this comes from a scenario, not from this machine.␛[0m
    ␛[36m↻␛[0m GPUDirect RDMA: ␛[1m␛[36mconverging␛[0m (load-stuck)
         Since: Mon 2026-11-16 11:26:40 UTC; 1min 4s ago
           Why: Loading nvidia has not finished after 60 s.
    What to do: ␛[1mIt cannot be interrupted. Look for errors of nvidia in the kernel␛[0m
                ␛[1mlog (journalctl -k); if it never ends, reboot the node.␛[0m
      Next try: in 12s (3 steps so far, 2 failed)
          Mode: observe: says what it would do, and does nothing
     Transport: peermem (not in place)
        Driver: nvidia 570.124.06 (open), RDMA stack MLNX_OFED 24.10-1.1.4.0
       Modules: mlx5_core       ␛[32mlive␛[0m     24.10-1.1.4  ␛[2mused by mlx5_ib␛[0m
                ib_core         ␛[32mlive␛[0m     24.10-1.1.4  ␛[2mused by ib_ipoib, ib_umad,␛[0m
                                                      ␛[2mib_uverbs, mlx5_ib, rdma_cm␛[0m
                mlx5_ib         ␛[32mlive␛[0m     24.10-1.1.4
                ib_uverbs       ␛[32mlive␛[0m     24.10-1.1.4  ␛[2mused by mlx5_ib, rdma_ucm␛[0m
                nvidia          ␛[36mloading␛[0m  570.124.06
                nvidia_peermem  ␛[2mabsent␛[0m   570.124.06
       Checked: 14s ago by peermemd 0.1.0, kernel 6.8.0-45-generic
    ");
}

#[test]
fn without_the_daemon_the_page_says_who_looked() {
    let text = view::status::render(&samples::not_applicable(), Some(&down()), &samples::screen());
    let banner: Vec<_> = text.lines().take(4).map(plain).collect();
    assert_snapshot!(banner.join("\n"), @r"
    peermemd is not running: peermemd.service is inactive. What follows is what
    peermemctl sees by itself; what it cannot see is unknown. Start it with:
    systemctl start peermemd
    ○ GPUDirect RDMA: not-applicable (no-gpu)
    ");
    assert!(plain(&text).contains("Checked: just now by peermemctl"));
}

#[test]
fn a_terminal_without_unicode_gets_ascii_only() {
    let screen = Screen { unicode: false, ..samples::screen() };
    for snapshot in [samples::ready(), samples::blocked(), samples::held(), samples::stuck()] {
        let text = view::status::render(&snapshot, None, &screen);
        assert!(text.is_ascii(), "{text}");
    }
}

#[test]
fn no_line_is_wider_than_the_screen() {
    for width in [60, 80, 120] {
        let screen = Screen { width, ..samples::screen() };
        for snapshot in [samples::ready(), samples::blocked(), samples::held(), samples::stuck()] {
            for line in plain(&view::status::render(&snapshot, None, &screen)).lines() {
                // A single word may be longer than the room that is left for it.
                let last = line.split_whitespace().last().map_or(0, |word| word.chars().count());
                assert!(line.chars().count() <= width || last > 20, "{width}: {line}");
            }
        }
    }
}

#[test]
fn the_list_shows_every_module() {
    let text = view::chain::full(&samples::blocked(), true, &samples::screen());
    assert_snapshot!(plain(&text), @r"
    MODULE          ROLE         STATE      VERSION      REFS  NOTES
    mlx5_core       rdma-driver  live       24.10-1.1.4  1     used by mlx5_ib
    ib_core         rdma-core    live       24.10-1.1.4  5     used by ib_ipoib,
                                                               ib_umad, ib_uverbs,
                                                               mlx5_ib, rdma_cm
    mlx5_ib         rdma-driver  live       24.10-1.1.4  0
    ib_uverbs       rdma-core    live       24.10-1.1.4  2     used by mlx5_ib,
                                                               rdma_ucm
    nvidia          gpu-driver   live       570.124.06   1     used by nvidia_uvm
    nvidia_peermem  peer-client  absent     570.124.06   0     last try:
                                                               symbol-version-mismatch
                                                               (EINVAL)
    nv_peer_mem     legacy       not-found               0
    ");
}

#[test]
fn the_history_reads_downwards_and_marks_boots() {
    let entry = |ago: u64, boot: &str, words: [&str; 4], errno, actor: &str| HistoryEntry {
        timestamp: samples::NOW - ago * 1_000_000,
        boot_id: boot.into(),
        event: words[0].into(),
        subject: words[1].into(),
        result: words[2].into(),
        reason: String::new(),
        errno,
        actor: actor.into(),
        text: words[3].into(),
    };
    let entries = [
        entry(9_000, "a", ["state", "", "ready", "Registered."], 0, "peermemd"),
        entry(60, "b", ["load", "nvidia", "failed", "No such device."], 19, "peermemd"),
        entry(50, "b", ["vanished", "nvidia_peermem", "ok", "It was unloaded."], 0, "outside"),
    ];
    let text = view::history::render(&entries, &samples::screen());
    assert_snapshot!(plain(&text), @r"
    2026-11-16 08:57:44  state                     ready   Registered.
    -- Boot --
    2026-11-16 11:26:44  load      nvidia          failed  No such device. (ENODEV)
    2026-11-16 11:26:54  vanished  nvidia_peermem  ok      It was unloaded. [not by
                                                           peermemd]
    ");
}
