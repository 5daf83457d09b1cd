//! Steps in progress: the stack machine that plays libkmod's probe, the shell of an `install`
//! command, and the kernel's loader against time.

use std::collections::VecDeque;
use std::time::Duration;

use super::Node;
use super::insert::Loading;
use super::modprobe::{Action, ProbeStep};
use super::remove::Ending;
use crate::host::Change;
use crate::model::{InstallCommand, ModuleName, Outcome};

/// A started step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobId(pub(super) u64);

/// Who does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Actor {
    Daemon,
    /// The worker of a daemon that was there before.
    EarlierDaemon,
    Outside,
}

/// What a job does next.
#[derive(Clone, Debug)]
pub(super) enum Frame {
    /// The rest of a probe list.
    Probe(VecDeque<ProbeStep>),
    /// Whatever went wrong above does not count.
    Forgive,
    /// The rest of a command line.
    Shell(VecDeque<(Connector, Simple)>),
    /// The end of an `install` command; whether it is the target's.
    Install { target: bool },
    /// The end of a `modprobe` in a command line.
    Modprobe(ModuleName),
    /// A module in the kernel's hands.
    Load(Loading),
    /// A removal, or the stop of a unit.
    End(Ending),
}

/// When a simple command of a command line runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connector {
    Always,
    OnSuccess,
    OnFailure,
}

/// A command that the simulated shell understands.
#[derive(Clone, Debug)]
pub(super) enum Simple {
    Status(i32),
    Exit(i32),
    Sleep(Duration),
    Modprobe { name: ModuleName, run_install: bool },
    Unknown(String),
}

/// How a job goes on.
pub(super) enum Next {
    /// At once, with this errno or status for the frame below.
    Returned(i32),
    /// At once, with a frame on top.
    Call(Frame),
    /// Later, at this frame; `None`: when somebody wakes it, if ever.
    Wait(Frame, Option<Duration>),
    /// The process that does it dies.
    Crashed(String),
}

/// A step in progress.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) id: JobId,
    pub(super) by: Actor,
    pub(super) module: Option<ModuleName>,
    pub(super) began: Duration,
    log_mark: usize,
    stack: Vec<Frame>,
    returned: i32,
    wake: Option<Duration>,
    silent: bool,
    /// Who is seen at it.
    actor: String,
    outcome: Outcome,
}

impl Job {
    pub(super) fn due(&self) -> Option<Duration> {
        self.wake
    }

    /// Whether it waits for a module to leave the hands of another loader.
    pub(super) fn waits_for(&self, module: &ModuleName) -> bool {
        matches!(self.stack.last(), Some(Frame::Load(load)) if load.waits_for(module))
    }

    pub(super) fn wake_at(&mut self, when: Duration) {
        self.wake = Some(when);
    }

    pub(super) fn message(&mut self, text: String) {
        self.outcome.message = text;
    }

    fn stderr(&mut self, line: &str) {
        if let Some(install) = &mut self.outcome.install {
            install.stderr.push_str(line);
            install.stderr.push('\n');
        }
    }
}

impl Node {
    pub(super) fn start_job(
        &mut self,
        by: Actor,
        module: Option<ModuleName>,
        first: Frame,
    ) -> JobId {
        self.jobs_started += 1;
        let id = JobId(self.jobs_started);
        self.jobs.push(Job {
            id,
            by,
            module,
            began: self.now,
            log_mark: self.log.len(),
            stack: vec![first],
            returned: 0,
            wake: Some(self.now),
            silent: self.silent && by == Actor::Outside,
            actor: self.actor.clone(),
            outcome: Outcome::success(),
        });
        self.run_job_at(self.jobs.len() - 1);
        id
    }

    /// Runs the first job whose time has come until it waits or ends.
    pub(super) fn run_due_job(&mut self) {
        let due = |job: &Job| job.wake.is_some_and(|wake| wake <= self.now);
        if let Some(index) = self.jobs.iter().position(due) {
            self.run_job_at(index);
        }
    }

    fn run_job_at(&mut self, index: usize) {
        let mut job = self.jobs.remove(index);
        job.wake = None;
        let silent = std::mem::replace(&mut self.silent, job.silent);
        let actor = std::mem::replace(&mut self.actor, job.actor.clone());
        let waits = self.run_job(&mut job);
        self.silent = silent;
        self.actor = actor;
        if waits { self.jobs.insert(index.min(self.jobs.len()), job) } else { self.end_job(job) }
    }

    /// Runs a job until it waits (`true`) or ends.
    fn run_job(&mut self, job: &mut Job) -> bool {
        while let Some(frame) = job.stack.pop() {
            match self.step(job, frame) {
                Next::Returned(value) => job.returned = value,
                Next::Call(frame) => job.stack.push(frame),
                Next::Wait(frame, wake) => {
                    job.stack.push(frame);
                    job.wake = wake;
                    return true;
                }
                Next::Crashed(how) => {
                    job.outcome.crashed = Some(how);
                    return false;
                }
            }
        }
        false
    }

    fn end_job(&mut self, mut job: Job) {
        match job.by {
            Actor::Daemon => {}
            Actor::EarlierDaemon => return self.tell(Change::LoadEnded),
            Actor::Outside => return,
        }
        let lines = self.log.iter().skip(job.log_mark).map(|line| line.text.clone());
        job.outcome.kernel_log = Some(self.readable_log(lines.collect()));
        job.outcome.errno = job.returned;
        self.outcomes.insert(job.id, job.outcome);
    }

    fn step(&mut self, job: &mut Job, frame: Frame) -> Next {
        let returned = std::mem::take(&mut job.returned);
        match frame {
            Frame::Probe(steps) if returned == 0 => step_probe(job, steps),
            Frame::Probe(_) => Next::Returned(returned),
            Frame::Forgive => Next::Returned(0),
            Frame::Shell(rest) => self.step_shell(job, rest, returned),
            Frame::Install { target } => step_install(job, target, returned),
            Frame::Modprobe(name) => step_modprobe(job, &name, returned),
            Frame::Load(loading) => self.step_load(job, loading),
            Frame::End(ending) => self.step_ending(job, ending),
        }
    }

    fn step_shell(
        &mut self,
        job: &mut Job,
        mut rest: VecDeque<(Connector, Simple)>,
        status: i32,
    ) -> Next {
        let Some((connector, command)) = rest.pop_front() else { return Next::Returned(status) };
        let skipped = match connector {
            Connector::Always => false,
            Connector::OnSuccess => status != 0,
            Connector::OnFailure => status == 0,
        };
        if skipped {
            job.returned = status;
            return Next::Call(Frame::Shell(rest));
        }
        match command {
            Simple::Status(status) => {
                job.returned = status;
                Next::Call(Frame::Shell(rest))
            }
            Simple::Exit(status) => Next::Returned(status),
            Simple::Sleep(time) => Next::Wait(Frame::Shell(rest), Some(self.now + time)),
            Simple::Unknown(word) => {
                job.stderr(&format!("sh: 1: {word}: not found"));
                job.returned = 127;
                Next::Call(Frame::Shell(rest))
            }
            Simple::Modprobe { name, run_install } => {
                job.stack.push(Frame::Shell(rest));
                self.call_modprobe(job, name, run_install)
            }
        }
    }

    fn call_modprobe(&mut self, job: &mut Job, name: ModuleName, run_install: bool) -> Next {
        if let Some(steps) = self.probe_list(&name, run_install) {
            job.stack.push(Frame::Modprobe(name));
            return Next::Call(Frame::Probe(steps.into()));
        }
        let release = &self.kernel.release;
        job.stderr(&format!(
            "modprobe: FATAL: Module {name} not found in directory /lib/modules/{release}"
        ));
        Next::Returned(1)
    }
}

fn step_probe(job: &mut Job, mut steps: VecDeque<ProbeStep>) -> Next {
    let Some(step) = steps.pop_front() else { return Next::Returned(0) };
    job.stack.push(Frame::Probe(steps));
    if !step.required {
        job.stack.push(Frame::Forgive);
    }
    match step.action {
        Action::File(module, options) => Next::Call(Frame::Load(Loading::new(module, options))),
        Action::Command(command) => {
            let target = step.target && job.outcome.install.is_none();
            let line = parse_shell(&command);
            if target {
                let stderr = String::new();
                job.outcome.install = Some(InstallCommand { command, status: 0, stderr });
            }
            job.stack.push(Frame::Install { target });
            Next::Call(Frame::Shell(line))
        }
    }
}

/// libkmod makes EINVAL of whatever status an `install` command ends with.
fn step_install(job: &mut Job, target: bool, status: i32) -> Next {
    if let Some(install) = job.outcome.install.as_mut().filter(|_| target) {
        install.status = status;
    }
    Next::Returned(if status == 0 { 0 } else { libc::EINVAL })
}

fn step_modprobe(job: &mut Job, name: &ModuleName, errno: i32) -> Next {
    if errno == 0 {
        return Next::Returned(0);
    }
    let words = nix::errno::Errno::from_raw(errno).desc();
    job.stderr(&format!("modprobe: ERROR: could not insert '{name}': {words}"));
    Next::Returned(1)
}

/// Reads a command line: simple commands joined by `;`, `&&` and `||`.
fn parse_shell(line: &str) -> VecDeque<(Connector, Simple)> {
    let spaced = line.replace("&&", " && ").replace("||", " || ").replace(';', " ; ");
    let mut commands = VecDeque::new();
    let mut connector = Connector::Always;
    let mut words = Vec::new();
    for word in spaced.split_whitespace().chain([";"]) {
        let next = match word {
            ";" => Connector::Always,
            "&&" => Connector::OnSuccess,
            "||" => Connector::OnFailure,
            word => {
                words.push(word);
                continue;
            }
        };
        if !words.is_empty() {
            commands.push_back((connector, parse_simple(&std::mem::take(&mut words))));
        }
        connector = next;
    }
    commands
}

fn parse_simple(words: &[&str]) -> Simple {
    let (&program, arguments) = words.split_first().unwrap_or((&":", &[]));
    let number = arguments.first().and_then(|word| word.parse().ok());
    match program.rsplit('/').next().unwrap_or(program) {
        "true" | ":" | "echo" => Simple::Status(0),
        "false" => Simple::Status(1),
        "exit" => Simple::Exit(number.unwrap_or(0)),
        "sleep" => Simple::Sleep(Duration::from_secs(number.unwrap_or(0).unsigned_abs().into())),
        "modprobe" => {
            let is_flag = |word: &&&str| word.starts_with('-');
            let ignore = |word: &&str| matches!(*word, "-i" | "--ignore-install");
            let name = arguments.iter().find(|word| !is_flag(word));
            match name.and_then(|name| ModuleName::new(name).ok()) {
                Some(name) => Simple::Modprobe { name, run_install: !arguments.iter().any(ignore) },
                None => Simple::Status(1),
            }
        }
        _ => Simple::Unknown(program.to_owned()),
    }
}
