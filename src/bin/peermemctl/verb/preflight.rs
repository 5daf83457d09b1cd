//! `peermemctl preflight`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anstyle::Style;
use peermemd::decide::preflight::report::{Certainty, Check};
use peermemd::host::linux::kernels::Root;
use peermemd::host::linux::kernels::installed::Kernel;
use peermemd::model::{self, CheckResult, Desired};
use serde::Serialize;

use super::Outcome;
use crate::exit;
use crate::failure::Failure;
use crate::foresight;
use crate::page::{BAD, BOLD, DIM, GOOD, PLAIN, Page, Row, WARN, clean, paint, table};
use crate::screen::Screen;
use crate::session::Session;

/// Judges before a load or a reboot whether the client will load. Reads files only; needs neither
/// privileges nor the daemon.
///
/// Without options, the kernel that runs and the one that will probably run next. Exits 1 if
/// anything fails for a kernel that was looked at.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Look at this kernel
    #[arg(long, value_name = "RELEASE", conflicts_with = "all")]
    kernel: Option<String>,
    /// Look at every installed kernel
    #[arg(long)]
    all: bool,
    /// Look at the system below this directory, such as an image that is being built
    #[arg(long, value_name = "DIR", default_value = "/", hide_default_value = true)]
    root: PathBuf,
}

#[derive(Serialize)]
struct Body<'a> {
    root: &'a PathBuf,
    kernels: &'a [Judged],
}

/// One kernel and what was found.
#[derive(Serialize)]
pub struct Judged {
    kernel: String,
    running: bool,
    likely_next: bool,
    bootable: bool,
    result: CheckResult,
    checks: Vec<Check>,
}

impl Args {
    #[allow(clippy::unused_async, reason = "every verb is run in the same way")]
    pub async fn run(self, session: &mut Session) -> Outcome {
        let root = self.root.canonicalize().map_err(|error| unreadable(&self.root, &error))?;
        let judged = self.judged(&session.desired(), &Root::new(root))?;
        let fails = judged.iter().any(|kernel| kernel.result == CheckResult::Fail);
        if session.wants_json() {
            session.print_json(&Body { root: &self.root, kernels: &judged })?;
        } else {
            let text = render(&session.screen, &judged, session.options.quiet);
            session.page(&text)?;
        }
        Ok(if fails { exit::FAILURE } else { exit::SUCCESS })
    }

    fn judged(&self, desired: &Desired, system: &Root) -> Result<Vec<Judged>, Failure> {
        let running = foresight::running(system);
        let release = running.as_ref().map(|kernel| kernel.release.as_str());
        let kernels = self.chosen(foresight::kernels(system), release)?;
        Ok(judge_all(desired, system, &kernels, running.as_ref()))
    }

    /// The kernels that were asked for.
    fn chosen(&self, found: Vec<Kernel>, running: Option<&str>) -> Result<Vec<Kernel>, Failure> {
        if let Some(release) = &self.kernel {
            let kernel = found.into_iter().find(|kernel| kernel.release == *release);
            return kernel.map(|kernel| vec![kernel]).ok_or_else(|| no_kernel(release));
        }
        // Nothing below a foreign root runs, and what is installed there is what is meant.
        let all = self.all || running.is_none();
        let wanted =
            |kernel: &Kernel| all || kernel.likely_next || Some(kernel.release.as_str()) == running;
        let chosen: Vec<_> = found.into_iter().filter(wanted).collect();
        if chosen.is_empty() { Err(no_kernel("any kernel")) } else { Ok(chosen) }
    }
}

/// The judgement on the running kernel of this machine and on the likely next one; none, if there
/// are no modules at all.
pub fn of_this_machine(desired: &Desired) -> Vec<Judged> {
    let arguments = Args { kernel: None, all: false, root: PathBuf::from("/") };
    arguments.judged(desired, &Root::new("/")).unwrap_or_default()
}

fn no_kernel(release: &str) -> Failure {
    let next = "See what is below lib/modules; depmod makes the index of a kernel's modules";
    Failure::new(format!("There are no modules of {}", clean(release)), "", next)
}

fn unreadable(root: &std::path::Path, error: &std::io::Error) -> Failure {
    let what = format!("{} cannot be looked into", root.display());
    Failure::new(what, error.to_string(), "Give a directory that is readable for you")
}

/// Kernels are independent of each other, and looking at one is mostly computing.
fn judge_all(
    desired: &Desired,
    root: &Root,
    kernels: &[Kernel],
    running: Option<&model::Kernel>,
) -> Vec<Judged> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((number, kernel)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|n| Some((n, kernels.get(n)?)))
        {
            let judged = judge(desired, root, kernel, running);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((number, judged));
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from).min(kernels.len());
    thread::scope(|scope| {
        for _ in 1..workers {
            scope.spawn(work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, judged)| judged).collect()
}

fn judge(
    desired: &Desired,
    root: &Root,
    kernel: &Kernel,
    running: Option<&model::Kernel>,
) -> Judged {
    let checks = foresight::judge(desired, root, &kernel.release, running);
    Judged {
        kernel: kernel.release.clone(),
        running: running.is_some_and(|running| running.release == kernel.release),
        likely_next: kernel.likely_next,
        bootable: kernel.bootable,
        result: worst(&checks.iter().collect::<Vec<_>>()),
        checks,
    }
}

fn worst(checks: &[&Check]) -> CheckResult {
    [CheckResult::Fail, CheckResult::Unknown, CheckResult::Warn]
        .into_iter()
        .find(|result| checks.iter().any(|check| check.result == *result))
        .unwrap_or(CheckResult::Pass)
}

/// Quiet shows only what is wrong.
fn render(screen: &Screen, judged: &[Judged], quiet: bool) -> String {
    let mut page = Page::new(screen);
    for (number, kernel) in judged.iter().enumerate() {
        let shown: Vec<_> = kernel
            .checks
            .iter()
            .filter(|check| !quiet || matches!(check.result, CheckResult::Fail | CheckResult::Warn))
            .collect();
        if quiet && shown.is_empty() {
            continue;
        }
        if number > 0 {
            page.line("");
        }
        page.line(&paint(BOLD, &heading(kernel, worst(&shown))));
        let rows: Vec<_> = shown.iter().flat_map(|check| rows(check)).collect();
        for line in table(&rows, screen.width) {
            page.line(&line);
        }
    }
    page.into_text()
}

fn heading(kernel: &Judged, result: CheckResult) -> String {
    let marks = [(kernel.running, "running"), (kernel.likely_next, "likely next")];
    let marks: Vec<_> = marks.iter().filter(|(on, _)| *on).map(|(_, text)| *text).collect();
    let marks = if marks.is_empty() { String::new() } else { format!(" ({})", marks.join(", ")) };
    format!("Kernel {}{marks}: {}", clean(&kernel.kernel), result.as_str())
}

/// The check, and below it what to do.
fn rows(check: &Check) -> Vec<Row> {
    let style = style(check.result);
    let sure = match check.certainty {
        Certainty::Certain | Certainty::Unknown => String::new(),
        Certainty::Likely => "likely".to_owned(),
    };
    let cells = |result: &str, id: &str, sure: &str| {
        vec![(style, result.to_owned()), (PLAIN, id.to_owned()), (DIM, sure.to_owned())]
    };
    let mut rows = vec![
        Row::new(cells(check.result.as_str(), check.id, &sure)).rest(PLAIN, check.detail.clone()),
    ];
    if !check.remedy.is_empty() {
        rows.push(Row::new(cells("", "", "")).rest(DIM, check.remedy.clone()));
    }
    rows
}

fn style(result: CheckResult) -> Style {
    match result {
        CheckResult::Pass => GOOD,
        CheckResult::Warn => WARN,
        CheckResult::Fail => BAD,
        CheckResult::Skip | CheckResult::Unknown => DIM,
    }
}
