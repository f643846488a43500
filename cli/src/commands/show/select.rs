//! Which GPUs are meant: `-i`.

use anyhow::anyhow;
use gpumon_probe::model::{Gpu, Inventory};

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
        let bus_id = gpu.pci_bus_id.value().and_then(|known| bus_id(known));
        is_uuid || bus_id.is_some() && bus_id == self::bus_id(id)
    };
    let by_index = id.parse().ok().filter(|index| inventory.gpus.iter().any(|gpu| gpu.index == *index));
    by_index.or_else(|| inventory.gpus.iter().find(is_it).map(|gpu| gpu.index))
}

/// Domain, bus, device and function of `00000000:1B:00.0`, whose domain may be shorter or left out.
fn bus_id(text: &str) -> Option<[u32; 4]> {
    let (place, function) = text.rsplit_once('.')?;
    let mut parts = place.rsplit(':').map(|part| u32::from_str_radix(part, 16).ok());
    let (device, bus, domain) = (parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?);
    if parts.next().is_some() {
        return None;
    }
    Some([domain, bus, device, u32::from_str_radix(function, 16).ok()?])
}

fn no_such(id: &str, inventory: &Inventory) -> Failure {
    let there_are = match inventory.gpus.as_slice() {
        [] => "there is none".to_owned(),
        [only] => format!("there is only {}", only.index),
        [first, .., last] => format!("there are {} to {}", first.index, last.index),
    };
    Failure::with_code(anyhow!("no GPU '{id}': {there_are}; give an index, a UUID or a PCI bus id"), NO_SUCH_GPU)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bus_ids_are_the_same_however_they_are_written() {
        for text in ["00000000:1B:00.0", "0000:1b:00.0", "1b:00.0", "00000000:1b:0.0"] {
            assert_eq!(bus_id(text), Some([0, 0x1b, 0, 0]), "{text}");
        }
        for text in ["", "1b", "1b:00", "x:1b:00.0", "0:0:1b:00.0", "GPU-1b00.0"] {
            assert_eq!(bus_id(text), None, "{text}");
        }
        assert_ne!(bus_id("0001:1b:00.0"), bus_id("1b:00.0"));
    }
}
