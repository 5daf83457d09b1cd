use std::time::{Duration, Instant};

use nix::libc;

use super::*;
use crate::decide::fixture::{REGISTER, load, name, node};
use crate::model::{ModuleFile, OptionLine, Symbol};

const CLIENT: &str = "nvidia_peermem";
/// What a diagnosis may add to a failed step. An unoptimised build on a busy machine gets more.
const BAR: Duration = Duration::from_millis(if cfg!(debug_assertions) { 100 } else { 20 });

fn with_log(errno: i32, lines: &[&str]) -> Outcome {
    let lines = lines.iter().map(|&line| line.to_owned()).collect();
    Outcome { kernel_log: Some(Fact::Known(lines)), ..Outcome::failed(errno) }
}

/// Everything but the client is loaded.
fn before_the_client() -> Observed {
    let mut observed = node();
    for module in ["mlx5_core", "ib_core", "mlx5_ib", "ib_uverbs", "nvidia"] {
        load(&mut observed, module);
    }
    observed
}

fn judged_of(module: &str, outcome: &Outcome, observed: &Observed) -> Finding {
    let step = Step::Insert { module: name(module) };
    failure(&step, outcome, &Desired::default(), observed).unwrap()
}

fn judged(outcome: &Outcome, observed: &Observed) -> Finding {
    judged_of(CLIENT, outcome, observed)
}

fn file<'a>(observed: &'a mut Observed, module: &str) -> &'a mut ModuleFile {
    let Fact::Known(files) = &mut observed.files else { panic!() };
    files.modules.get_mut(&name(module)).unwrap()
}

fn symbol(name: &str, crc: u32) -> Symbol {
    Symbol { name: name.to_owned(), crc: Some(crc) }
}

#[test]
fn each_cause_of_a_silent_invalid_argument_is_told_apart() {
    let silent = with_log(libc::EINVAL, &[]);
    let reason = |change: fn(&mut Observed)| {
        let mut observed = before_the_client();
        change(&mut observed);
        judged(&silent, &observed).reason
    };
    assert_eq!(reason(|_| {}), Reason::Unclassified);
    assert_eq!(
        reason(|observed| file(observed, CLIENT).needs = Fact::Known(Vec::new())),
        Reason::BuiltWithoutPeerMemory
    );
    assert_eq!(
        reason(|observed| file(observed, CLIENT).needs = Fact::Known(vec![symbol(REGISTER, 1)])),
        Reason::SymbolVersionMismatch
    );
    assert_eq!(
        reason(|observed| file(observed, CLIENT).options = "peerdirect_support=2".to_owned()),
        Reason::BadParameter
    );
    assert_eq!(reason(|observed| load(observed, "nv_peer_mem")), Reason::DuplicateClient);
    assert_eq!(
        reason(|observed| file(observed, CLIENT).needs = Fact::unknown("truncated")),
        Reason::DamagedFile
    );
}

#[test]
fn without_evidence_it_says_what_was_looked_at_and_the_470_series_is_remembered() {
    let finding = judged(&with_log(libc::EINVAL, &[]), &before_the_client());
    for part in ["looked at its file", "kernel log, which is silent", "470 series"] {
        assert!(finding.detail.contains(part), "{}", finding.detail);
    }
    let lost = Outcome { log_overrun: true, ..with_log(libc::EINVAL, &[]) };
    let finding = judged(&lost, &before_the_client());
    assert!(finding.detail.contains("overwritten") && !finding.detail.contains("470"));
}

#[test]
fn each_cause_of_not_permitted_is_told_apart() {
    let silent = with_log(libc::EPERM, &[]);
    let judge = |change: fn(&mut Observed)| {
        let mut observed = before_the_client();
        change(&mut observed);
        judged(&silent, &observed)
    };
    let denied = judge(|observed| {
        observed.kernel.denied_on_command_line = vec![name(CLIENT)];
    });
    assert_eq!(denied.reason, Reason::DenyListed);
    assert!(denied.remedy().contains("module_blacklist="), "{}", denied.remedy());
    let locked = judge(|observed| observed.kernel.lockdown = Some("integrity".to_owned()));
    assert_eq!(locked.reason, Reason::Lockdown);
    let signed = judge(|observed| {
        observed.kernel.lockdown = Some("integrity".to_owned());
        file(observed, CLIENT).signer = Some("Me".to_owned());
    });
    assert_eq!(signed.reason, Reason::Lockdown);
    assert!(signed.detail.contains("'Me'"));
    let off = judge(|observed| observed.kernel.modules_disabled = Some(true));
    assert_eq!(off.reason, Reason::ModulesDisabled);
    let sandboxed = judge(|_| {});
    assert_eq!(sandboxed.reason, Reason::Unclassified);
    assert!(sandboxed.remedy().contains("CAP_SYS_MODULE"));
    let unread = judge(|observed| observed.kernel.lockdown = None);
    assert!(unread.detail.contains("the lockdown level could not be read"), "{}", unread.detail);
}

#[test]
fn a_missing_file_and_a_missing_symbol_are_told_apart() {
    let mut observed = before_the_client();
    let line = format!("{CLIENT}: Unknown symbol {REGISTER} (err 0)");
    let outcome = with_log(libc::ENOENT, &[&line]);
    assert_eq!(judged(&outcome, &observed).reason, Reason::UnknownSymbol);
    let Fact::Known(files) = &mut observed.files else { panic!() };
    files.modules.remove(&name(CLIENT));
    assert_eq!(judged(&with_log(libc::ENOENT, &[]), &observed).reason, Reason::ModuleNotFound);
    let mut observed = before_the_client();
    let Fact::Known(files) = &mut observed.files else { panic!() };
    files.exporter = None;
    files.modules.get_mut(&name("ib_core")).unwrap().exports = Fact::Known(Vec::new());
    assert_eq!(judged(&outcome, &observed).reason, Reason::PeerMemoryUnsupported);
}

#[test]
fn a_symbol_of_a_stale_provider_is_told_with_the_file_that_has_it() {
    let mut observed = before_the_client();
    file(&mut observed, "ib_core").build_id = Some("newer".to_owned());
    let line = format!("{CLIENT}: Unknown symbol {REGISTER} (err -2)");
    let finding = judged(&with_log(libc::ENOENT, &[&line]), &observed);
    assert!(
        finding.detail.contains("the loaded ib_core is not /lib/modules/test/ib_core.ko"),
        "{}",
        finding.detail
    );
    assert!(finding.remedy().contains("modprobe -r ib_core"), "{}", finding.remedy());
}

#[test]
fn a_mixed_failure_names_every_culprit_of_every_kind() {
    let lines = [
        "nvidia_peermem: disagrees about version of symbol nvidia_p2p_get_pages",
        "nvidia_peermem: Unknown symbol nvidia_p2p_get_pages (err -22)",
        "nvidia_peermem: no symbol version for ib_unregister_peer_memory_client",
        "nvidia_peermem: Unknown symbol ib_unregister_peer_memory_client (err -22)",
        "nvidia_peermem: Unknown symbol nvidia_p2p_put_pages (err -2)",
    ];
    // The errno is that of the last symbol.
    let finding = judged(&with_log(libc::ENOENT, &lines), &before_the_client());
    assert_eq!(finding.reason, Reason::SymbolVersionMismatch);
    for part in [
        "the version of nvidia_p2p_get_pages of nvidia",
        "no CRC for ib_unregister_peer_memory_client of ib_core",
        "knows no symbol nvidia_p2p_put_pages of nvidia",
    ] {
        assert!(finding.detail.contains(part), "{part}: {}", finding.detail);
    }
}

#[test]
fn a_bad_parameter_names_its_line_and_what_is_allowed() {
    let mut observed = before_the_client();
    let Fact::Known(files) = &mut observed.files else { panic!() };
    let line = OptionLine {
        origin: "/etc/modprobe.d/a.conf:3".to_owned(),
        options: "peerdirect_support=7".to_owned(),
    };
    files.option_lines.insert(name(CLIENT), vec![line]);
    let log = "nvidia-peermem nv_mem_param_conf_check:5 ERROR invalid peerdirect_support param \
               value 7";
    let finding = judged(&with_log(libc::EINVAL, &[log]), &observed);
    assert_eq!(finding.reason, Reason::BadParameter);
    assert!(finding.detail.contains("/etc/modprobe.d/a.conf:3"), "{}", finding.detail);
    assert!(finding.detail.contains("0 or 1"), "{}", finding.detail);
}

#[test]
fn what_a_dependency_could_not_do_is_laid_at_its_own_door() {
    let mut observed = before_the_client();
    crate::decide::fixture::unload(&mut observed, "nvidia");
    let finding = judged(&with_log(libc::ENODEV, &["NVRM: No NVIDIA GPU found."]), &observed);
    assert_eq!((finding.reason, finding.subject.as_str()), (Reason::NvidiaProbeFailed, "nvidia"));
    let finding = judged(&with_log(libc::EIO, &[]), &observed);
    assert_eq!((finding.reason, finding.subject.as_str()), (Reason::GpuInitFailed, "nvidia"));
}

#[test]
fn the_words_of_an_install_command_lead_to_the_same_evidence() {
    let run = |stderr: &str| Outcome {
        install: Some(InstallCommand {
            command: "modprobe -i nvidia-current-peermem".to_owned(),
            status: 1,
            stderr: stderr.to_owned(),
        }),
        ..with_log(libc::EINVAL, &[])
    };
    let mut observed = before_the_client();
    let key = "modprobe: ERROR: could not insert 'nvidia_current_peermem': Key was rejected by \
               service";
    assert_eq!(judged(&run(key), &observed).reason, Reason::SignatureRejected);
    assert_eq!(
        judged(&run("sh: 1: nope: not found"), &observed).reason,
        Reason::InstallCommandFailed
    );
    file(&mut observed, CLIENT).needs = Fact::Known(Vec::new());
    let invalid = "modprobe: ERROR: could not insert 'x': Invalid argument";
    let finding = judged(&run(invalid), &observed);
    assert_eq!(finding.reason, Reason::BuiltWithoutPeerMemory);
    assert!(finding.detail.contains("modprobe -i nvidia-current-peermem"));
}

#[test]
fn an_exec_format_error_is_told_by_the_file() {
    let mut observed = before_the_client();
    let outcome = with_log(libc::ENOEXEC, &[]);
    assert_eq!(judged(&outcome, &observed).reason, Reason::DamagedFile);
    file(&mut observed, "ib_core").vermagic = Some("6.1.0 SMP preempt ".to_owned());
    file(&mut observed, CLIENT).vermagic = Some("6.1.0 SMP ".to_owned());
    assert_eq!(judged(&outcome, &observed).reason, Reason::VermagicMismatch);
}

#[test]
fn a_diagnosis_of_a_full_log_costs_little() {
    let observed = before_the_client();
    let lines: Vec<String> = (0..256)
        .map(|number| format!("some_other_driver: message {number} {}", "x".repeat(400)))
        .chain(["nvidia_peermem: disagrees about version of symbol ib_x".to_owned()])
        .collect();
    let outcome = Outcome { kernel_log: Some(Fact::Known(lines)), ..Outcome::failed(libc::EINVAL) };
    let took = |_| {
        let begin = Instant::now();
        assert_eq!(judged(&outcome, &observed).reason, Reason::SymbolVersionMismatch);
        begin.elapsed()
    };
    let best = (0..5).map(took).min().unwrap();
    println!("a diagnosis took {best:?}");
    assert!(best < BAR, "{best:?}");
}
