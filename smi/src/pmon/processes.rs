//! The processes of a GPU and the resources that each of them uses.

use std::collections::BTreeMap;

use gpumon_probe::vendor::nvml::query::{Query, SystemQuery};

use crate::{
    Context,
    running::{COMPUTE, GRAPHICS, SHARED, running},
};

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
    pub(super) kind: &'static str,
    /// `None` if the driver has no new sample.
    pub(super) shares: Option<Shares>,
    /// `None` if the driver does not report the memory.
    pub(super) memory_mib: Option<i128>,
    pub(super) protected_mib: Option<i128>,
    pub(super) command: String,
}

/// Percentages of SM, memory, encoder, decoder, JPEG decoder and OFA; -1 if the driver does not
/// measure the engine.
pub(super) type Shares = [i128; 6];

/// Returns the processes of a GPU by PID, and the time stamp of the newest sample. Only samples
/// after the time stamp `since` are requested.
pub(super) fn of(context: &Context<'_>, gpu: u32, wants: Wants, since: u64) -> (Vec<Process>, u64) {
    let mut found: BTreeMap<u32, (i128, i128)> = BTreeMap::new();
    let running = running(|query| context.ask(gpu, query)).unwrap_or_default();
    for [_, _, pid, kinds, bytes] in running {
        let entry = found.entry(pid as u32).or_insert((0, bytes));
        *entry = (entry.0 | kinds, entry.1.max(bytes));
    }
    if found.is_empty() {
        return (Vec::new(), since);
    }
    let (shares, newest) = if wants.utilization {
        utilization(context, gpu, since)
    } else {
        (BTreeMap::new(), since)
    };
    let protected_mib = if wants.protected {
        nothing_protected(context, gpu)
    } else {
        None
    };
    let processes = found
        .into_iter()
        .map(|(pid, (kinds, bytes))| Process {
            pid,
            kind: kind(kinds),
            shares: shares.get(&pid).map(|(_, shares)| *shares),
            memory_mib: (bytes >= 0).then_some(bytes / BYTES_PER_MIB),
            protected_mib,
            command: command(context, pid),
        })
        .collect();
    (processes, newest)
}

/// Returns nvidia-smi's letters for the kinds of a process: `C` computes, `G` draws, `M` computes
/// for clients of MPS, `C+G` and `M+C` do both.
fn kind(kinds: i128) -> &'static str {
    match (
        kinds & SHARED != 0,
        kinds & COMPUTE != 0,
        kinds & GRAPHICS != 0,
    ) {
        (true, true, _) => "M+C",
        (true, false, _) => "M",
        (false, true, true) => "C+G",
        (false, false, true) => "G",
        _ => "C",
    }
}

/// Returns each process's newest sample with its time stamp, and the newest time stamp of all
/// samples.
fn utilization(
    context: &Context<'_>,
    gpu: u32,
    since: u64,
) -> (BTreeMap<u32, (i128, Shares)>, u64) {
    let mut newest_of: BTreeMap<u32, (i128, Shares)> = BTreeMap::new();
    let mut newest = since;
    if let Ok(answer) = context.ask(gpu, Query::ProcessUtilization(since)) {
        for [at, pid, shares @ ..] in answer.numbers().as_chunks::<8>().0 {
            newest = newest.max(*at as u64);
            let entry = newest_of.entry(*pid as u32).or_insert((*at, *shares));
            if entry.0 < *at {
                *entry = (*at, *shares);
            }
        }
    }
    (newest_of, newest)
}

/// Returns 0 if no protected memory of the GPU is in use, because then no process uses any.
/// Otherwise `None`, because the driver does not report protected memory per process.
fn nothing_protected(context: &Context<'_>, gpu: u32) -> Option<i128> {
    let used = context.ask(gpu, Query::ProtectedMemory).ok()?.at(2)?;
    (used == 0).then_some(0)
}

/// Returns the file name of a process's program, cut to the width of the column.
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
