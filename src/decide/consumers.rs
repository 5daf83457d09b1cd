//! Who can see a registration: programs decide for themselves whether GPUDirect RDMA is there, by
//! files that not every stack makes.

use crate::model::{Answer, Desired, Fact, InitState, Observed, PeerDirectory};

/// A file that a consumer takes for the proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// `/sys/kernel/mm/memory_peers/NAME/version`.
    Listed(&'static str),
    /// `/sys/module/NAME/version`.
    Loaded(&'static str),
}

/// A consumer in a range of versions.
#[derive(Clone, Copy, Debug)]
pub struct Consumer {
    /// Its name.
    pub name: &'static str,
    /// Which versions.
    pub versions: &'static str,
    /// Any of these is enough for it.
    pub signs: &'static [Sign],
}

const fn consumer(name: &'static str, versions: &'static str, signs: &'static [Sign]) -> Consumer {
    Consumer { name, versions, signs }
}

use Sign::{Listed, Loaded};

/// What the consumers look for: NCCL `ncclIbGdrSupport`, HPC-X's plugin, UCX `ib_md.c`, NVSHMEM.
pub const CONSUMERS: &[Consumer] = &[
    consumer("NCCL", "before 2.9", &[Listed("nv_mem")]),
    // The second directory has never been made by any driver.
    consumer("NCCL", "2.9 to 2.21", &[Listed("nv_mem"), Listed("nvidia-peermem")]),
    consumer("NCCL", "2.22", &[Listed("nv_mem"), Listed("nv_mem_nc")]),
    consumer(
        "NCCL",
        "2.23.4 and later",
        &[Listed("nv_mem"), Listed("nv_mem_nc"), Loaded("nvidia_peermem")],
    ),
    consumer(
        "HPC-X plugin for NCCL",
        "since 2024-09",
        &[Listed("nv_mem"), Listed("nv_mem_nc"), Loaded("nvidia_peermem")],
    ),
    consumer("UCX", "before 2024-09", &[Listed("nv_mem")]),
    consumer(
        "UCX",
        "since 2024-09",
        &[Listed("nv_mem"), Loaded("nvidia_peermem"), Loaded("nv_peer_mem")],
    ),
    consumer("NVSHMEM", "before 2024-09", &[Listed("nv_mem"), Listed("nvidia-peermem")]),
    consumer(
        "NVSHMEM",
        "since 2024-09",
        &[Listed("nv_mem"), Listed("nvidia-peermem"), Loaded("nvidia_peermem")],
    ),
];

/// Whether a consumer sees the registration of this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// `NAME VERSIONS`.
    pub consumer: String,
    /// A word for identifiers: letters, digits and dashes.
    pub id: String,
    /// Whether it does.
    pub sees: Answer,
    /// By which file, or which it looks for in vain.
    pub detail: String,
}

/// Asks for every consumer. Whoever looked before the client was there remembers that for the
/// life of its process.
pub fn sights(desired: &Desired, observed: &Observed) -> Vec<Sight> {
    CONSUMERS.iter().map(|consumer| sight(consumer, desired, observed)).collect()
}

fn sight(consumer: &Consumer, desired: &Desired, observed: &Observed) -> Sight {
    let answers: Vec<_> =
        consumer.signs.iter().map(|sign| (sign, shows(*sign, desired, observed))).collect();
    let find = |wanted| answers.iter().find(|(_, answer)| *answer == wanted);
    let all = consumer.signs.iter().map(|sign| sign.path()).collect::<Vec<_>>().join(", ");
    let (sees, detail) = match (find(Answer::Yes), find(Answer::Unknown)) {
        (Some((sign, _)), _) => (Answer::Yes, format!("{} is there", sign.path())),
        (None, Some((sign, _))) => {
            (Answer::Unknown, format!("whether {} is there could not be read", sign.path()))
        }
        (None, None) => (Answer::No, format!("it looks for {all}, and none is there")),
    };
    let consumer = format!("{} {}", consumer.name, consumer.versions);
    let id = consumer
        .to_ascii_lowercase()
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join("-");
    Sight { consumer, id, sees, detail }
}

impl Sign {
    /// The file.
    pub fn path(self) -> String {
        match self {
            Self::Listed(name) => format!("/sys/kernel/mm/memory_peers/{name}/version"),
            Self::Loaded(name) => format!("/sys/module/{name}/version"),
        }
    }
}

fn shows(sign: Sign, desired: &Desired, observed: &Observed) -> Answer {
    let yes_if = |there| if there { Answer::Yes } else { Answer::No };
    match sign {
        Listed(name) => match &observed.rdma.peers {
            PeerDirectory::Unknown(_) => Answer::Unknown,
            peers => yes_if(peers.client(name).is_some()),
        },
        Loaded(name) => {
            let Some(module) = desired.modules().find(|module| module.as_str() == name) else {
                return Answer::No;
            };
            match observed.state(module) {
                Fact::Unknown(_) => Answer::Unknown,
                Fact::Known(InitState::Live) => {
                    yes_if(observed.loaded(module).is_some_and(|it| it.version.is_some()))
                }
                Fact::Known(_) => Answer::No,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{node, ready_node};
    use super::*;

    fn who_sees(observed: &Observed) -> Vec<String> {
        let sights = sights(&Desired::default(), observed);
        sights.into_iter().filter(|it| it.sees == Answer::Yes).map(|it| it.id).collect()
    }

    #[test]
    fn with_the_directory_everybody_sees_it() {
        assert_eq!(who_sees(&ready_node()).len(), CONSUMERS.len());
    }

    #[test]
    fn without_the_directory_only_the_newer_ones_do() {
        let mut observed = ready_node();
        observed.rdma.peers = PeerDirectory::Absent;
        let wanted = [
            "nccl-2-23-4-and-later",
            "hpc-x-plugin-for-nccl-since-2024-09",
            "ucx-since-2024-09",
            "nvshmem-since-2024-09",
        ];
        assert_eq!(who_sees(&observed), wanted);
    }

    #[test]
    fn nobody_sees_what_is_not_there_and_what_cannot_be_read_is_unknown() {
        assert!(who_sees(&node()).is_empty());
        let mut observed = node();
        observed.rdma.peers = PeerDirectory::Unknown("dark".to_owned());
        let sights = sights(&Desired::default(), &observed);
        assert!(sights.iter().all(|sight| sight.sees == Answer::Unknown));
    }
}
