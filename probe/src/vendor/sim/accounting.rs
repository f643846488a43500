//! The driver's accounting of simulated processes.

use crate::model::{Absence, AccountedProcess, Reading};

use super::{
    ProcessState, Timeline,
    scenario::{AccountedSettings, ProcessSettings},
    tenancy::round_percent,
};

/// Returns the accounts of the processes that ended before the timeline started.
pub(super) fn list_earlier_accounts(
    accounted: &[AccountedSettings],
    timeline: &Timeline,
) -> Vec<AccountedProcess> {
    let account = |own: &AccountedSettings| AccountedProcess {
        pid: own.pid,
        running: false,
        gpu_percent: Reading::from(own.gpu_percent.map(f64::from).ok_or(Absence::Unknown)),
        memory_percent: Reading::from(own.memory_percent.map(f64::from).ok_or(Absence::Unknown)),
        max_memory_bytes: Reading::from(
            own.max_memory.map(|bytes| bytes.0).ok_or(Absence::Unknown),
        ),
        time_ms: (own.ran_s.0 * 1000.0) as u64,
        started_us: timeline.unix_ms(-own.ran_s.0) * 1000,
    };
    accounted.iter().map(account).collect()
}

/// Returns the accounts of the processes that are running.
pub(super) fn list_running_accounts(
    processes: &[ProcessState],
    timeline: &Timeline,
) -> Vec<AccountedProcess> {
    let account = |process: &ProcessState| AccountedProcess {
        pid: process.pid,
        running: true,
        gpu_percent: Reading::Now(process.sm_percent.into()),
        memory_percent: Reading::Now(process.memory_percent.into()),
        max_memory_bytes: Reading::Now(process.memory_bytes.unwrap_or(0)),
        time_ms: 0,
        started_us: timeline.unix_ms(process.started_s) * 1000,
    };
    processes.iter().map(account).collect()
}

/// Returns the accounts of the scenario's processes that have started, sorted from oldest to
/// newest.
pub(super) fn list_scenario_accounts(
    processes: &[ProcessSettings],
    seconds: f64,
    timeline: &Timeline,
) -> Vec<AccountedProcess> {
    let mut begun: Vec<_> = processes
        .iter()
        .filter(|process| process.has_started(seconds))
        .collect();
    begun.sort_by(|one, other| one.started_s(seconds).total_cmp(&other.started_s(seconds)));
    begun
        .into_iter()
        .flat_map(|process| list_table_accounts(process, seconds, timeline))
        .collect()
}

fn list_table_accounts(
    process: &ProcessSettings,
    seconds: f64,
    timeline: &Timeline,
) -> impl Iterator<Item = AccountedProcess> + use<> {
    let (running, started_s) = (process.is_running(seconds), process.started_s(seconds));
    let until = process.ended_s().map_or(seconds, |end| end.min(seconds));
    let average = process.sm_percent(f64::midpoint(started_s.max(0.0), until));
    let moments = [
        started_s.max(0.0),
        f64::midpoint(started_s.max(0.0), until),
        until,
    ];
    let memory = process.memory.as_ref().map_or(0.0, |curve| {
        moments
            .map(|at| curve.value_at(at))
            .into_iter()
            .fold(0.0, f64::max)
    });
    let time_ms = if running {
        0
    } else {
        ((until - started_s) * 1000.0) as u64
    };
    let stamp = timeline.unix_ms(started_s) * 1000;
    process.list_pids(seconds).map(move |pid| AccountedProcess {
        pid,
        running,
        gpu_percent: Reading::Now(round_percent(average).into()),
        memory_percent: Reading::Now(round_percent(average * 0.4).into()),
        max_memory_bytes: Reading::Now(memory as u64),
        time_ms,
        started_us: stamp,
    })
}
