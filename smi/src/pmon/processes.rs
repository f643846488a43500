//! A GPU's processes, and the resources that each process uses.

use std::collections::BTreeMap;

use gpumon_probe::vendor::nvml::query::{Query, SystemQuery};

use crate::{
    Context,
    running::{COMPUTE, GRAPHICS, MPS_CLIENT, read_running_processes},
};

const BYTES_PER_MIB: i128 = 1 << 20;

const COMMAND_WIDTH: usize = 15;

#[derive(Debug, Clone, Copy)]
pub(super) struct RequestedReadings {
    pub(super) utilization: bool,
    pub(super) protected: bool,
}

#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) kind: &'static str,
    /// The process's shares of the engines, or `None` if the driver has no new sample.
    pub(super) shares: Option<EngineShares>,
    /// The process's memory in MiB, or `None` if the driver does not report it.
    pub(super) memory_mib: Option<i128>,
    pub(super) protected_mib: Option<i128>,
    pub(super) command: String,
}

/// The shares of SM, memory, encoder, decoder, JPEG decoder, and OFA in percent. -1 means that the
/// driver does not measure the engine.
pub(super) type EngineShares = [i128; 6];

/// Returns a GPU's processes, sorted by PID, and the timestamp of the newest sample. Only samples
/// after the timestamp `since` are requested.
pub(super) fn read_processes(
    context: &Context<'_>,
    gpu: u32,
    wants: RequestedReadings,
    since: u64,
) -> (Vec<Process>, u64) {
    let mut found: BTreeMap<u32, (i128, i128)> = BTreeMap::new();
    let running = read_running_processes(|query| context.run_query(gpu, query)).unwrap_or_default();
    for [_, _, pid, kinds, bytes] in running {
        let entry = found.entry(pid as u32).or_insert((0, bytes));
        *entry = (entry.0 | kinds, entry.1.max(bytes));
    }
    if found.is_empty() {
        return (Vec::new(), since);
    }
    let (shares, newest) = if wants.utilization {
        read_utilization(context, gpu, since)
    } else {
        (BTreeMap::new(), since)
    };
    let protected_mib = if wants.protected {
        read_protected_memory(context, gpu)
    } else {
        None
    };
    let processes = found
        .into_iter()
        .map(|(pid, (kinds, bytes))| Process {
            pid,
            kind: kind_letters(kinds),
            shares: shares.get(&pid).map(|(_, shares)| *shares),
            memory_mib: (bytes >= 0).then_some(bytes / BYTES_PER_MIB),
            protected_mib,
            command: read_command(context, pid),
        })
        .collect();
    (processes, newest)
}

/// Returns nvidia-smi's letters for the kinds of work that a process does: `C` for compute, `G` for
/// graphics, `M` for MPS clients, `C+G` and `M+C` for both.
fn kind_letters(kinds: i128) -> &'static str {
    match (
        kinds & MPS_CLIENT != 0,
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

/// Returns each process's newest sample with its timestamp, and the newest timestamp of all
/// samples.
fn read_utilization(
    context: &Context<'_>,
    gpu: u32,
    since: u64,
) -> (BTreeMap<u32, (i128, EngineShares)>, u64) {
    let mut newest_of: BTreeMap<u32, (i128, EngineShares)> = BTreeMap::new();
    let mut newest = since;
    if let Ok(answer) = context.run_query(gpu, Query::ProcessUtilization(since)) {
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
/// Otherwise, returns `None`, because the driver does not report protected memory per process.
fn read_protected_memory(context: &Context<'_>, gpu: u32) -> Option<i128> {
    let used = context
        .run_query(gpu, Query::ProtectedMemory)
        .ok()?
        .number_at(2)?;
    (used == 0).then_some(0)
}

/// Returns the file name of a process's program, truncated to the column's width.
fn read_command(context: &Context<'_>, pid: u32) -> String {
    let Ok(answer) = context.run_system_query(SystemQuery::ProcessName(pid)) else {
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
        .take(COMMAND_WIDTH)
        .collect()
}
