//! Which GPUs are meant: `-i`.

use anyhow::anyhow;
use gpumon_probe::model::{Gpu, Inventory, is_same_bus_id};

use super::look::Look;
use crate::exit::Failure;

/// nvidia-smi's exit code where there is no such GPU.
const NO_SUCH_GPU: u8 = 6;

/// Leaves only the GPUs that were named, by index, UUID or PCI bus id; all of them where none was.
pub(super) fn select(look: &mut Look, ids: &[String]) -> Result<(), Failure> {
    if ids.is_empty() {
        return Ok(());
    }
    let mut wanted = Vec::new();
    for id in ids {
        wanted.push(find(id, &look.inventory).ok_or_else(|| no_such(id, &look.inventory))?);
    }
    let is_wanted = |index: u32| wanted.contains(&index);
    look.inventory.gpus.retain(|gpu| is_wanted(gpu.index));
    look.inventory.topology.retain(|link| is_wanted(link.a) && is_wanted(link.b));
    look.sample.gpus.retain(|gpu| is_wanted(gpu.index));
    look.details.retain(|details| is_wanted(details.index));
    look.events.retain(|event| event.gpu.as_ref().is_none_or(|gpu| is_wanted(gpu.index)));
    Ok(())
}

fn find(id: &str, inventory: &Inventory) -> Option<u32> {
    let id = id.trim();
    let is_it = |gpu: &&Gpu| {
        let is_uuid = gpu.uuid.as_ref().is_some_and(|uuid| uuid.eq_ignore_ascii_case(id));
        is_uuid || gpu.pci_bus_id.value().is_some_and(|known| is_same_bus_id(id, known))
    };
    let by_index = id.parse().ok().filter(|index| inventory.gpus.iter().any(|gpu| gpu.index == *index));
    by_index.or_else(|| inventory.gpus.iter().find(is_it).map(|gpu| gpu.index))
}

fn no_such(id: &str, inventory: &Inventory) -> Failure {
    let there_are = match inventory.gpus.as_slice() {
        [] => "there is none".to_owned(),
        [only] => format!("there is only {}", only.index),
        [first, .., last] => format!("there are {} to {}", first.index, last.index),
    };
    Failure::with_code(anyhow!("no GPU '{id}': {there_are}; give an index, a UUID or a PCI bus id"), NO_SUCH_GPU)
}
