//! Which GPUs are meant: `-i`.

use super::look::Look;
use crate::{exit::Failure, place};

/// Leaves only the GPUs that were named, or of which a MIG device was; all of them where none was.
pub(super) fn select(look: &mut Look, ids: &[String]) -> Result<(), Failure> {
    if ids.is_empty() {
        return Ok(());
    }
    let mut wanted = Vec::new();
    for id in ids {
        wanted.extend(place::find(id.trim(), &look.inventory.gpus)?.map(|place| place.gpu));
    }
    let is_wanted = |index: u32| wanted.contains(&index);
    look.inventory.gpus.retain(|gpu| is_wanted(gpu.index));
    look.inventory.topology.retain(|link| is_wanted(link.a) && is_wanted(link.b));
    look.sample.gpus.retain(|gpu| is_wanted(gpu.index));
    look.details.retain(|details| is_wanted(details.index));
    look.events.retain(|event| event.gpu.as_ref().is_none_or(|gpu| is_wanted(gpu.index)));
    Ok(())
}
