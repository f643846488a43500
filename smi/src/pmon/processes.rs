//! The processes of a GPU, and what each uses.

use std::collections::BTreeMap;

use gpumon_probe::vendor::nvml::query::{Query, SystemQuery};

use crate::Context;

const BYTES_PER_MIB: i128 = 1 << 20;

const COMMAND: usize = 15;

#[derive(Debug, Clone, Copy)]
pub(super) struct Wants {
    pub(super) utilization: bool,
    pub(super) protected: bool,
}

#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// `C` computes, `G` draws, `M` computes for clients of MPS, `C+G` and `M+C` do both.
    pub(super) kind: &'static str,
    /// `None` where the driver has no new sample.
    pub(super) used: Option<Used>,
    /// `None` where the driver does not know.
    pub(super) memory_mib: Option<i128>,
    pub(super) protected_mib: Option<i128>,
    pub(super) command: String,
}

/// Shares in percent; -1 is a share that the driver does not count.
#[derive(Debug, Clone, Copy)]
pub(super) struct Used {
    pub(super) sm: i128,
    pub(super) memory: i128,
    pub(super) encoder: i128,
    pub(super) decoder: i128,
    pub(super) jpeg: i128,
    pub(super) ofa: i128,
}

/// The processes of a GPU in the order of their PIDs, and the time stamp of the newest sample. Samples that were seen
/// before `since` are not asked for again.
pub(super) fn of(context: &Context<'_>, gpu: u32, wants: Wants, since: u64) -> (Vec<Process>, u64) {
    let mut found: BTreeMap<u32, (Kinds, Option<i128>)> = BTreeMap::new();
    for (query, kinds) in [
        (
            Query::ComputeProcesses,
            Kinds {
                compute: true,
                ..Kinds::default()
            },
        ),
        (
            Query::GraphicsProcesses,
            Kinds {
                graphics: true,
                ..Kinds::default()
            },
        ),
        (
            Query::MpsProcesses,
            Kinds {
                mps: true,
                ..Kinds::default()
            },
        ),
    ] {
        let Ok(answer) = context.ask(gpu, query) else {
            continue;
        };
        for [pid, memory, ..] in answer.numbers().as_chunks::<4>().0 {
            let memory = Some(*memory).filter(|bytes| *bytes >= 0);
            let entry = found.entry(*pid as u32).or_default();
            entry.0.add(kinds);
            // A process that is listed twice has its memory in both lists.
            entry.1 = entry.1.max(memory);
        }
    }
    if found.is_empty() {
        return (Vec::new(), since);
    }
    let (used, newest) = if wants.utilization {
        utilization(context, gpu, since)
    } else {
        (BTreeMap::new(), since)
    };
    let protected = if wants.protected {
        nothing_protected(context, gpu)
    } else {
        None
    };
    let processes = found
        .into_iter()
        .map(|(pid, (kinds, memory))| Process {
            pid,
            kind: kinds.letters(),
            used: used.get(&pid).copied(),
            memory_mib: memory.map(|bytes| bytes / BYTES_PER_MIB),
            protected_mib: protected,
            command: command(context, pid),
        })
        .collect();
    (processes, newest)
}

/// In which of the driver's lists a process stands.
#[derive(Debug, Clone, Copy, Default)]
struct Kinds {
    compute: bool,
    graphics: bool,
    mps: bool,
}

impl Kinds {
    fn add(&mut self, other: Self) {
        self.compute |= other.compute;
        self.graphics |= other.graphics;
        self.mps |= other.mps;
    }

    fn letters(self) -> &'static str {
        match self {
            Self {
                mps: true,
                compute: true,
                ..
            } => "M+C",
            Self { mps: true, .. } => "M",
            Self {
                compute: true,
                graphics: true,
                ..
            } => "C+G",
            Self { graphics: true, .. } => "G",
            _ => "C",
        }
    }
}

/// The newest sample of each process, and its time stamp.
fn utilization(context: &Context<'_>, gpu: u32, since: u64) -> (BTreeMap<u32, Used>, u64) {
    let mut used: BTreeMap<u32, (i128, Used)> = BTreeMap::new();
    let mut newest = since;
    if let Ok(answer) = context.ask(gpu, Query::ProcessUtilization(since)) {
        for sample in answer.numbers().as_chunks().0 {
            let [at, pid, sm, memory, encoder, decoder, jpeg, ofa] = *sample;
            newest = newest.max(at as u64);
            let share = Used {
                sm,
                memory,
                encoder,
                decoder,
                jpeg,
                ofa,
            };
            let entry = used.entry(pid as u32).or_insert((at, share));
            if entry.0 < at {
                *entry = (at, share);
            }
        }
    }
    (
        used.into_iter()
            .map(|(pid, (_, share))| (pid, share))
            .collect(),
        newest,
    )
}

/// 0 where no memory of the GPU is protected, and so none of any process. How much each has is not told one by one.
fn nothing_protected(context: &Context<'_>, gpu: u32) -> Option<i128> {
    let used = context.ask(gpu, Query::ProtectedMemory).ok()?.at(2)?;
    (used == 0).then_some(0)
}

/// The name of a process's program: the last part of its path, as long as the column.
fn command(context: &Context<'_>, pid: u32) -> String {
    let Ok(answer) = context.system(SystemQuery::ProcessName(pid)) else {
        return "-".to_owned();
    };
    let line = answer.text().unwrap_or("");
    let program = line.split([' ', '\0']).next().unwrap_or("");
    let directory = program.rfind('/').map_or(0, |slash| slash + 1);
    line[directory..]
        .chars()
        .take_while(|character| *character != '\0')
        .map(|character| {
            if character.is_control() {
                ' '
            } else {
                character
            }
        })
        .take(COMMAND)
        .collect()
}
