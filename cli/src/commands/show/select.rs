//! The selection of GPUs in a snapshot.

use crate::{exit::Failure, shown_gpus::ShownGpus, snapshot::Snapshot};

/// Removes all GPUs that are not shown.
pub(super) fn select(snapshot: &mut Snapshot, shown: &ShownGpus) -> Result<(), Failure> {
    let Some(wanted) = shown.find(&snapshot.inventory.gpus)? else {
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
