//! Keeps the indices that an earlier collector gave to the GPUs, even if the driver's order has
//! changed.
//!
//! When the driver is loaded, it numbers its GPUs in the order of the PCI bus. Adding or removing a
//! GPU therefore renumbers all GPUs after it.

use std::{
    path::Path,
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use super::{Options, schedule::OPENING_TIME, threads::spawn};
use crate::{
    model::{Absence, Health, KnownGpu},
    vendor::{MachineSource, Source, SourceError},
};

/// The index reported by the driver for each GPU, or `None` if the driver does not find the GPU.
#[derive(Debug, Clone, PartialEq)]
struct DriverIndices(Vec<Option<u32>>);

/// Returns a source that gives the known GPUs their earlier indices, or `source` itself if no GPU
/// is known.
///
/// # Errors
/// Returns an error if the driver finds no GPU.
pub(super) fn source_with_known_indices(
    source: &Arc<dyn Source>,
    options: &Options,
) -> Result<Arc<dyn Source>, SourceError> {
    if options.known_gpus.is_empty() {
        return Ok(Arc::clone(source));
    }
    let found = read_gpu_uuids(source, &options.sys_root)?;
    let driver_indices = DriverIndices::assign_indices(&options.known_gpus, &found);
    if let Some(answers) = options
        .answers
        .as_ref()
        .filter(|_| !driver_indices.is_driver_order())
    {
        answers.mark_renumbered();
    }
    Ok(Arc::new(MachineSource::with_indices(
        Arc::clone(source),
        &driver_indices.0,
    )))
}

/// Returns the UUID of each GPU, in the driver's order. The UUID is `None` for a GPU that does not
/// respond in time, or that sleeps and cannot be identified. `sys_root` is `/sys` except in tests.
///
/// # Errors
/// Returns an error if the driver finds no GPU.
pub fn read_gpu_uuids(
    source: &Arc<dyn Source>,
    sys_root: &Path,
) -> Result<Vec<Option<String>>, SourceError> {
    let count = source.device_count()?;
    let (sender, identified) = mpsc::channel();
    for index in 0..count {
        let (source, sys_root, sender) = (Arc::clone(source), sys_root.to_owned(), sender.clone());
        spawn(&format!("identify-{index}"), move || {
            let opened = if source.is_asleep(index, &sys_root) {
                None
            } else {
                source.open(index).ok()
            };
            let gpu = opened.map_or_else(
                || source.identify_closed(index, &Absence::NoAnswer),
                |mut device| device.identify(),
            );
            let _ = sender.send((index, gpu.uuid));
        })?;
    }
    drop(sender);
    let mut found = vec![None; count as usize];
    let until = Instant::now() + OPENING_TIME;
    let left = || {
        until
            .saturating_duration_since(Instant::now())
            .max(Duration::from_millis(1))
    };
    while let Ok((index, uuid)) = identified.recv_timeout(left()) {
        found[index as usize] = uuid;
    }
    Ok(found)
}

impl DriverIndices {
    /// Assigns each GPU its earlier index. A GPU whose UUID could not be read gets the first free
    /// index, because the driver's order has probably not changed. The index of a lost GPU is used
    /// only if no other index is free. A GPU with a new UUID gets the index of a GPU that was never
    /// identified, or otherwise a new index.
    fn assign_indices(known: &[KnownGpu], found: &[Option<String>]) -> Self {
        let mut driver_indices = vec![None; known.len()];
        let position_of = |uuid: &String| {
            known
                .iter()
                .position(|known| known.gpu.uuid.as_ref() == Some(uuid))
        };
        let mut others = Vec::new();
        for (index, uuid) in (0..).zip(found) {
            match uuid.as_ref().and_then(position_of) {
                Some(position) => driver_indices[position] = Some(index),
                None => others.push((index, uuid.is_some())),
            }
        }
        for (index, has_uuid) in others {
            let is_free = |position: &usize| {
                driver_indices[*position].is_none()
                    && known
                        .get(*position)
                        .is_some_and(|own| !has_uuid || own.gpu.uuid.is_none())
            };
            let is_lost = |position: &usize| matches!(known[*position].health, Health::Lost { .. });
            match (0..driver_indices.len())
                .filter(is_free)
                .min_by_key(is_lost)
            {
                Some(position) => driver_indices[position] = Some(index),
                None => driver_indices.push(Some(index)),
            }
        }
        Self(driver_indices)
    }

    fn is_driver_order(&self) -> bool {
        (0..)
            .zip(&self.0)
            .all(|(index, driver_index)| *driver_index == Some(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::Gpu,
        vendor::{DeviceError, SourceChoice},
    };

    fn known_gpus(uuids: &[Option<&str>]) -> Vec<KnownGpu> {
        let known = |(index, uuid): (u32, Option<&str>)| KnownGpu {
            gpu: Gpu {
                uuid: uuid.map(str::to_owned),
                ..Gpu::new_unidentified(index, &Absence::NoAnswer)
            },
            health: Health::Ok,
        };
        (0..).zip(uuids.iter().copied()).map(known).collect()
    }

    #[test]
    fn new_gpus_get_indices_after_known_gpus() {
        let assigned = |before: &[Option<&str>], now: &[Option<&str>]| {
            let now: Vec<_> = now.iter().map(|uuid| uuid.map(str::to_owned)).collect();
            DriverIndices::assign_indices(&known_gpus(before), &now).0
        };
        let (a, b, c, d, unknown) = (Some("a"), Some("b"), Some("c"), Some("d"), None);
        assert_eq!(assigned(&[a, b], &[a, b]), [Some(0), Some(1)]);
        assert_eq!(
            assigned(&[a, b], &[c, a, b]),
            [Some(1), Some(2), Some(0)],
            "a GPU was added before them"
        );
        assert_eq!(
            assigned(&[a, b, c], &[b, c]),
            [None, Some(0), Some(1)],
            "a GPU is missing"
        );
        assert_eq!(
            assigned(&[a, b], &[b, c]),
            [None, Some(0), Some(1)],
            "its slot has another GPU"
        );
        assert_eq!(
            assigned(&[a, b, c], &[a, unknown, c]),
            [Some(0), Some(1), Some(2)],
            "a GPU does not answer"
        );
        assert_eq!(
            assigned(&[a, unknown, c], &[a, d, c]),
            [Some(0), Some(1), Some(2)],
            "first answer of a GPU"
        );
        assert_eq!(
            assigned(&[a], &[unknown, a]),
            [Some(1), Some(0)],
            "the added GPU does not answer"
        );
        let mut known = known_gpus(&[a, b, c]);
        known[1].health = Health::Lost { since_ms: 1 };
        let found = [a.map(str::to_owned), None];
        let indices = DriverIndices::assign_indices(&known, &found).0;
        assert_eq!(
            indices,
            [Some(0), None, Some(1)],
            "the GPU that does not answer is not the lost one"
        );
    }

    #[test]
    fn missing_previously_known_gpu_is_reported_as_lost() {
        let source: Arc<dyn Source> = SourceChoice::Sim(2)
            .open(&crate::vendor::Roots::default())
            .unwrap();
        let uuid = |index| source.open(index).unwrap().identify().uuid;
        let (zero, one) = (uuid(0), uuid(1));
        let before = known_gpus(&[one.as_deref(), Some("GPU-gone"), zero.as_deref()]);
        let options = Options {
            known_gpus: before.into(),
            ..Options::new(Duration::from_secs(1), crate::owner::CommandLines::All)
        };
        let placed = source_with_known_indices(&source, &options).unwrap();
        assert_eq!(placed.device_count(), Ok(3));
        let identity = placed.open(0).unwrap().identify();
        assert_eq!((identity.index, identity.uuid), (0, one));
        assert_eq!(placed.open(1).err(), Some(DeviceError::Lost));
        let mut device = placed.open(2).unwrap();
        assert_eq!(device.identify().uuid, zero);
        assert!(device.take_traces().iter().all(|trace| trace.index == 2));
        let links: Vec<_> = placed
            .find_links(&[0, 1, 2])
            .into_iter()
            .map(|link| (link.a, link.b))
            .collect();
        assert_eq!(links, [(0, 2)]);
    }
}
