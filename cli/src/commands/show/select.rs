//! The selection of GPUs and processes in a snapshot.

use gpumon_probe::model::{Process, Reading};

use super::ShowArgs;
use crate::{exit::Failure, shown_gpus::ShownGpus, snapshot::Snapshot};

/// Removes all GPUs and processes that are not shown.
pub(super) fn select(snapshot: &mut Snapshot, args: &ShowArgs) -> Result<(), Failure> {
    let is_shown = |process: &Process| {
        let is_users = |user: &String| process.user.value() == Some(user);
        args.user.as_ref().is_none_or(is_users) && args.shown.is_shown(process)
    };
    for gpu in &mut snapshot.sample.gpus {
        if let Reading::Now(processes)
        | Reading::Earlier {
            value: processes, ..
        } = &mut gpu.processes
        {
            processes.retain(is_shown);
        }
    }
    let Some(wanted) = ShownGpus::from(&args.gpus).find(&snapshot.inventory.gpus)? else {
        return Ok(());
    };
    let is_wanted = |index: u32| wanted.contains(&index);
    snapshot.inventory.gpus.retain(|gpu| is_wanted(gpu.index));
    snapshot
        .inventory
        .topology
        .retain(|link| is_wanted(link.a) && is_wanted(link.b));
    snapshot.sample.gpus.retain(|gpu| is_wanted(gpu.index));
    snapshot.details.retain(|details| is_wanted(details.index));
    snapshot
        .events
        .retain(|event| event.gpu.as_ref().is_none_or(|gpu| is_wanted(gpu.index)));
    Ok(())
}
