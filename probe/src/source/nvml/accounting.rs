//! Processes as the driver accounts for them.

use nvml_wrapper::Device;

use super::ask::Asker;
use crate::model::{Absence, AccountedProcess, Reading};

/// The driver remembers thousands, and each costs a call.
const NEWEST: usize = 64;

/// The newest processes, where accounting is on.
pub(super) fn read(device: &Device<'_>, mode: &Reading<bool>, asker: &mut Asker) -> Reading<Vec<AccountedProcess>> {
    match mode {
        Reading::Absent(reason) => return Reading::Absent(reason.clone()),
        Reading::Now(false) | Reading::Earlier { value: false, .. } => return Reading::Now(Vec::new()),
        _ => {}
    }
    // The driver lists the oldest first.
    asker.ask("accounting PIDs", || device.accounting_pids()).map(|pids| {
        let newest = pids.iter().rev().take(NEWEST);
        newest.filter_map(|pid| process(device, *pid)).collect()
    })
}

/// `None` where it was dropped from the driver's memory since it was listed.
fn process(device: &Device<'_>, pid: u32) -> Option<AccountedProcess> {
    let stats = device.accounting_stats_for(pid).ok()?;
    let percent =
        |share: Option<u32>| share.map_or(Reading::Absent(Absence::Unknown), |share| Reading::Now(f64::from(share)));
    Some(AccountedProcess {
        pid,
        running: stats.is_running,
        gpu_percent: percent(stats.gpu_utilization),
        memory_percent: percent(stats.memory_utilization),
        max_memory_bytes: stats.max_memory_usage.map_or(Reading::Absent(Absence::Unknown), Reading::Now),
        time_ms: stats.time,
        started_us: stats.start_time,
    })
}
