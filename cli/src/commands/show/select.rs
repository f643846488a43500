//! Which GPUs are meant: `-i`.

use crate::{device_id, exit::Failure, snapshot::Snapshot};

/// Leaves only the GPUs that were named, or of which a MIG device was; all of them where none was.
pub(super) fn select(snapshot: &mut Snapshot, ids: &[String]) -> Result<(), Failure> {
    if ids.is_empty() {
        return Ok(());
    }
    let mut wanted = Vec::new();
    for id in ids {
        wanted.extend(device_id::find(id.trim(), &snapshot.inventory.gpus)?.map(|id| id.gpu));
    }
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
