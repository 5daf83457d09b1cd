//! The ladder of evidence for the client's registration.

use crate::model::{
    Answer, Desired, Evidence, EvidenceId, Fact, InitState, ModuleName, Observed, PeerDirectory,
    Role,
};

/// All rungs, and what they come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ladder {
    /// Every rung, in the order of the interface.
    pub evidence: Vec<Evidence>,
    /// What the client is registered with, for the sentence that says so.
    pub exporter: Option<ModuleName>,
}

impl Ladder {
    /// Reads every rung off one look.
    pub fn climb(desired: &Desired, observed: &Observed) -> Self {
        let live = live(desired, observed);
        let exporter = linked_to(desired, observed);
        let is_live = live.answer == Answer::Yes;
        let evidence = vec![
            live,
            linked(desired, observed, is_live, &exporter),
            listed(desired, observed, is_live),
            owner(desired, observed),
            kernel_log(desired, observed, is_live),
            memory_regions(desired, observed),
            active_port(observed),
        ];
        Self { evidence, exporter: exporter.known().cloned().flatten() }
    }

    /// What a rung says.
    pub fn answer(&self, id: EvidenceId) -> Answer {
        self.rung(id).map_or(Answer::Unknown, |rung| rung.answer)
    }

    /// A rung.
    pub fn rung(&self, id: EvidenceId) -> Option<&Evidence> {
        self.evidence.iter().find(|rung| rung.id == id)
    }

    /// Live, linked not no, listed not no.
    pub fn registered(&self) -> bool {
        self.answer(EvidenceId::Live) == Answer::Yes && !self.contradicted()
    }

    /// The client is live, and yet the stack that would show it does not.
    pub fn contradicted(&self) -> bool {
        self.answer(EvidenceId::Live) == Answer::Yes
            && [EvidenceId::Linked, EvidenceId::Listed]
                .into_iter()
                .any(|id| self.answer(id) == Answer::No)
    }
}

fn rung(id: EvidenceId, answer: Answer, detail: impl Into<String>) -> Evidence {
    Evidence { id, answer, detail: detail.into() }
}

fn live(desired: &Desired, observed: &Observed) -> Evidence {
    let client = &desired.client;
    let say = |answer, detail: String| rung(EvidenceId::Live, answer, detail);
    match observed.state(client) {
        Fact::Known(InitState::Live) => say(Answer::Yes, format!("{client} is live")),
        Fact::Known(InitState::Builtin) => say(Answer::Yes, format!("{client} is built in")),
        Fact::Known(InitState::Absent) => say(Answer::No, format!("{client} is not loaded")),
        Fact::Known(InitState::Coming) => say(Answer::No, format!("{client} is being loaded")),
        Fact::Known(InitState::Going) => say(Answer::No, format!("{client} is being unloaded")),
        Fact::Unknown(why) => say(Answer::Unknown, why),
    }
}

/// The loaded module that the client is linked to: `Known(None)` if the true exporter is known
/// and the client does not hold it.
fn linked_to(desired: &Desired, observed: &Observed) -> Fact<Option<ModuleName>> {
    let holds = |exporter: &ModuleName| -> Fact<bool> {
        match observed.loaded(exporter) {
            Some(loaded) => loaded.holders.as_ref().map(|held| held.contains(&desired.client)),
            None => Fact::unknown(format!("{exporter} is not among the modules that were read")),
        }
    };
    if let Fact::Known(Some(exporter)) = &observed.rdma.live_exporter {
        return holds(exporter).map(|held| held.then(|| exporter.clone()));
    }
    // Who exports the symbol in the running kernel is not known: then a link to a module that
    // can be the one is evidence, and the lack of one is none.
    let on_disk = observed.files.known().and_then(|files| files.exporter.clone());
    let cores =
        desired.load_order.iter().filter(|module| desired.role(module) == Some(Role::RdmaCore));
    on_disk.iter().chain(cores).find(|module| holds(module).is_known_and(|held| *held)).map_or_else(
        || Fact::unknown("which loaded module exports the registration symbol is not known"),
        |module| Fact::Known(Some(module.clone())),
    )
}

fn linked(
    desired: &Desired,
    observed: &Observed,
    is_live: bool,
    exporter: &Fact<Option<ModuleName>>,
) -> Evidence {
    let client = &desired.client;
    let say = |answer, detail: String| rung(EvidenceId::Linked, answer, detail);
    if !is_live {
        return say(Answer::No, format!("{client} is not live"));
    }
    if observed.state(client) == Fact::Known(InitState::Builtin) {
        return say(Answer::NotApplicable, format!("{client} is built in"));
    }
    match exporter {
        Fact::Known(Some(exporter)) => {
            say(Answer::Yes, format!("{client} stands among the holders of {exporter}"))
        }
        Fact::Known(None) => say(
            Answer::No,
            format!(
                "{client} does not stand among the holders of the module that exports {}",
                desired.register_symbol
            ),
        ),
        Fact::Unknown(why) => say(Answer::Unknown, why.clone()),
    }
}

fn listed(desired: &Desired, observed: &Observed, is_live: bool) -> Evidence {
    let name = &desired.client_name;
    let say = |answer, detail: String| rung(EvidenceId::Listed, answer, detail);
    match &observed.rdma.peers {
        PeerDirectory::Unknown(why) => return say(Answer::Unknown, why.clone()),
        peers if peers.client(name).is_some() => {
            return say(Answer::Yes, format!("memory_peers/{name} is present"));
        }
        PeerDirectory::Absent | PeerDirectory::Present(_) => {}
    }
    if !is_live {
        return say(Answer::No, format!("memory_peers/{name} is not present"));
    }
    match &observed.rdma.has_peer_directory {
        Fact::Known(true) => say(
            Answer::No,
            format!("this RDMA stack has the memory_peers directory, and {name} is not in it"),
        ),
        Fact::Known(false) => say(
            Answer::NotApplicable,
            "this RDMA stack has no memory_peers directory, which is normal for it".to_owned(),
        ),
        Fact::Unknown(why) => say(
            Answer::Unknown,
            format!("whether this RDMA stack has a memory_peers directory is not known: {why}"),
        ),
    }
}

fn owner(desired: &Desired, observed: &Observed) -> Evidence {
    let name = &desired.client_name;
    let say = |answer, detail: String| rung(EvidenceId::Owner, answer, detail);
    let Some(listed) = observed.rdma.peers.client(name) else {
        return say(Answer::NotApplicable, format!("memory_peers/{name} is not present"));
    };
    let version = |module: &ModuleName| observed.loaded(module)?.version.clone();
    let text = format!("memory_peers/{name} has version {}", listed.version);
    if version(&desired.client).is_some_and(|version| version == listed.version) {
        return say(Answer::Yes, format!("{text}, as {} has", desired.client));
    }
    if let Some(legacy) = desired
        .legacy
        .iter()
        .find(|legacy| version(legacy).is_some_and(|version| version == listed.version))
    {
        return say(Answer::No, format!("{text}, as {legacy} has"));
    }
    say(Answer::Unknown, format!("{text}, which is no loaded module's"))
}

fn kernel_log(desired: &Desired, observed: &Observed, is_live: bool) -> Evidence {
    let client = &desired.client;
    let say = |answer, detail: String| rung(EvidenceId::KernelLog, answer, detail);
    if !is_live {
        return say(Answer::NotApplicable, format!("{client} is not live"));
    }
    match &observed.client_errors {
        Fact::Known(errors) => match errors.lines.first() {
            None => say(Answer::Yes, format!("no error of {client} since it was loaded")),
            Some(first) => {
                say(Answer::No, format!("{client} has logged errors, the first: {first}"))
            }
        },
        Fact::Unknown(why) => say(Answer::Unknown, why.clone()),
    }
}

fn memory_regions(desired: &Desired, observed: &Observed) -> Evidence {
    let say = |answer, detail: String| rung(EvidenceId::MemoryRegions, answer, detail);
    if let Some(client) = observed.rdma.peers.client(&desired.client_name)
        && client.active_mrs().is_some()
    {
        return say(Answer::Yes, "memory_peers counts them".to_owned());
    }
    match observed.loaded(&desired.client).map(|loaded| &loaded.refcount) {
        Some(Fact::Known(_)) => {
            say(Answer::Yes, "the reference count of the client counts them".to_owned())
        }
        Some(Fact::Unknown(why)) => say(Answer::Unknown, why.clone()),
        None => say(Answer::NotApplicable, format!("{} is not loaded", desired.client)),
    }
}

fn active_port(observed: &Observed) -> Evidence {
    let say = |answer, detail: String| rung(EvidenceId::ActivePort, answer, detail);
    match &observed.rdma.ports {
        Fact::Unknown(why) => say(Answer::Unknown, why.clone()),
        Fact::Known(ports) if ports.is_empty() => {
            say(Answer::No, "there is no RDMA device".to_owned())
        }
        Fact::Known(ports) => match ports.iter().find(|port| port.active) {
            Some(port) => say(Answer::Yes, format!("{} port {} is active", port.device, port.port)),
            None => say(Answer::No, "no RDMA port is active".to_owned()),
        },
    }
}
