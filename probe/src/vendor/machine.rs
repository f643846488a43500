//! Access to all GPUs of a machine by their machine-wide indices.

use std::{path::Path, sync::Arc};

use super::{
    AnswersReader, Device, DeviceError, DriverError, ErrorLog, Notice, ReadDepth, Reporter, Source,
    SourceError,
};
use crate::cpu_use::ProcessUse;
use crate::model::{Absence, Gpu, GpuDetails, GpuLink, GpuSample, Platform, Trace};

/// The GPUs of one or more drivers. The machine-wide indices can order the GPUs differently from
/// the drivers' own indices.
pub(crate) struct MachineSource {
    sources: Vec<Arc<dyn Source>>,
    places: GpuLocations,
}

/// The location of each GPU, by machine-wide index. The location is `None` if no driver has found
/// the GPU.
#[derive(Debug, Clone, PartialEq)]
struct GpuLocations(Vec<Option<GpuLocation>>);

/// A GPU's location, which consists of its driver and its index in that driver.
#[derive(Debug, Clone, Copy, PartialEq)]
struct GpuLocation {
    /// The position of the driver in `sources`.
    source: usize,
    /// The driver's own index of the GPU.
    index: u32,
}

impl MachineSource {
    /// Creates a source for the GPUs of one driver. `driver_indices` contains the driver's index
    /// for each machine-wide index.
    pub(crate) fn with_indices(source: Arc<dyn Source>, driver_indices: &[Option<u32>]) -> Self {
        let place = |index: &Option<u32>| index.map(|index| GpuLocation { source: 0, index });
        Self {
            sources: vec![source],
            places: GpuLocations(driver_indices.iter().map(place).collect()),
        }
    }

    /// Combines the GPUs of all drivers that could be opened, in the order of the drivers. A
    /// failing driver does not affect the others.
    ///
    /// # Errors
    /// Returns the first driver's error if no driver finds a GPU.
    pub(super) fn open_all(
        opened: Vec<Result<Arc<dyn Source>, SourceError>>,
    ) -> Result<Arc<dyn Source>, SourceError> {
        let mut all = Self {
            sources: Vec::new(),
            places: GpuLocations(Vec::new()),
        };
        let mut first_error = None;
        for source in opened {
            match source.and_then(|source| Ok((source.device_count()?, source))) {
                Ok((count, opened)) => {
                    let source = all.sources.len();
                    let places = (0..count).map(|index| Some(GpuLocation { source, index }));
                    all.places.0.extend(places);
                    all.sources.push(opened);
                }
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        match first_error {
            Some(error) if all.sources.is_empty() => Err(error),
            _ => Ok(Arc::new(all)),
        }
    }

    fn find_location(&self, index: u32) -> Option<(&Arc<dyn Source>, u32)> {
        let place = self.places.get(index)?;
        Some((&self.sources[place.source], place.index))
    }
}

impl GpuLocations {
    fn get(&self, index: u32) -> Option<GpuLocation> {
        self.0.get(index as usize).copied().flatten()
    }

    /// Returns the machine-wide index of the GPU at a location.
    fn index_of(&self, place: GpuLocation) -> Option<u32> {
        (0..)
            .zip(&self.0)
            .find_map(|(index, own)| (*own == Some(place)).then_some(index))
    }
}

impl Source for MachineSource {
    fn platform(&self) -> Platform {
        let platforms = self.sources.iter().map(|source| source.platform());
        let platforms: Vec<_> = platforms.collect();
        Platform {
            is_simulated: platforms.iter().any(|own| own.is_simulated),
            drivers: platforms.into_iter().flat_map(|own| own.drivers).collect(),
        }
    }

    fn device_count(&self) -> Result<u32, SourceError> {
        Ok(self.places.0.len() as u32)
    }

    fn open(&self, index: u32) -> Result<Box<dyn Device>, DeviceError> {
        let (source, driver_index) = self.find_location(index).ok_or(DeviceError::Lost)?;
        Ok(Box::new(IndexedDevice {
            device: source.open(driver_index)?,
            index,
        }))
    }

    fn is_asleep(&self, index: u32, sys_root: &Path) -> bool {
        self.find_location(index)
            .is_some_and(|(source, index)| source.is_asleep(index, sys_root))
    }

    fn identify_closed(&self, index: u32, reason: &Absence) -> Gpu {
        match self.find_location(index) {
            Some((source, driver_index)) => Gpu {
                index,
                ..source.identify_closed(driver_index, reason)
            },
            None => Gpu::new_unidentified(index, reason),
        }
    }

    /// Returns the reporter of the first driver that has one. Only NVIDIA's driver does; the other
    /// drivers write to the kernel log.
    fn reporter(&self) -> Option<Box<dyn Reporter>> {
        let reporter = |(source, own): (usize, &Arc<dyn Source>)| Some((source, own.reporter()?));
        let (source, reporter) = self.sources.iter().enumerate().find_map(reporter)?;
        Some(Box::new(IndexedReporter {
            reporter,
            source,
            places: self.places.clone(),
        }))
    }

    fn error_logs(&self, path: &Path) -> Vec<Box<dyn ErrorLog>> {
        let sources = self.sources.iter();
        sources.flat_map(|source| source.error_logs(path)).collect()
    }

    fn find_links(&self, gpus: &[u32]) -> Vec<GpuLink> {
        let mut all = Vec::new();
        for (source, own) in self.sources.iter().enumerate() {
            let places = gpus.iter().filter_map(|index| self.places.get(*index));
            let found: Vec<_> = places
                .filter(|place| place.source == source)
                .map(|place| place.index)
                .collect();
            let index_of = |index| self.places.index_of(GpuLocation { source, index });
            all.extend(own.find_links(&found).into_iter().filter_map(|link| {
                let (a, b) = (index_of(link.a)?, index_of(link.b)?);
                Some(GpuLink {
                    a: a.min(b),
                    b: a.max(b),
                    ..link
                })
            }));
        }
        all
    }
}

struct IndexedDevice {
    device: Box<dyn Device>,
    index: u32,
}

impl Device for IndexedDevice {
    fn identify(&mut self) -> Gpu {
        Gpu {
            index: self.index,
            ..self.device.identify()
        }
    }

    fn stays_open(&mut self) -> bool {
        self.device.stays_open()
    }

    fn read(&mut self, sample: &mut GpuSample, depth: ReadDepth) -> Result<(), DeviceError> {
        self.device.read(sample, depth)
    }

    fn read_details(&mut self, details: &mut GpuDetails) -> Result<(), DeviceError> {
        self.device.read_details(details)
    }

    fn run_tool_queries(&mut self, all: bool) {
        self.device.run_tool_queries(all);
    }

    fn answers_reader(&self) -> Option<AnswersReader> {
        self.device.answers_reader()
    }

    fn take_traces(&mut self) -> Vec<Trace> {
        let placed = |trace| Trace {
            index: self.index,
            ..trace
        };
        self.device.take_traces().into_iter().map(placed).collect()
    }

    fn simulated_cpu_use(&self) -> Vec<ProcessUse> {
        self.device.simulated_cpu_use()
    }

    fn take_errors(&mut self) -> Vec<DriverError> {
        self.device.take_errors()
    }
}

struct IndexedReporter {
    reporter: Box<dyn Reporter>,
    source: usize,
    places: GpuLocations,
}

impl Reporter for IndexedReporter {
    fn add(&mut self, gpu: u32) {
        if let Some(place) = self.places.get(gpu)
            && place.source == self.source
        {
            self.reporter.add(place.index);
        }
    }

    fn wait_for_event(&mut self) -> Option<(u32, Notice)> {
        let (index, notice) = self.reporter.wait_for_event()?;
        let source = self.source;
        Some((self.places.index_of(GpuLocation { source, index })?, notice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::SourceChoice;

    #[test]
    fn gpus_of_all_drivers_get_consecutive_indices() {
        let simulated = |gpus| SourceChoice::Sim(gpus).open(&crate::vendor::Roots::default());
        let failed = Err(SourceError::NoDevice("none".to_owned()));
        let all = MachineSource::open_all(vec![simulated(2), failed, simulated(3)]).unwrap();
        assert_eq!(all.device_count(), Ok(5));
        let identity = |index| all.open(index).unwrap().identify();
        let own: Vec<_> = (0..5).map(|index| identity(index).vendor_index).collect();
        assert_eq!(own, [0, 1, 0, 1, 2].map(Some));
        let closed = all.identify_closed(4, &Absence::Asleep);
        assert_eq!((closed.index, closed.vendor_index), (4, Some(2)));
        assert_eq!(identity(4).index, 4);
        let links = all.find_links(&[0, 1, 2, 3]);
        let pairs: Vec<_> = links.iter().map(|link| (link.a, link.b)).collect();
        assert_eq!(pairs, [(0, 1), (2, 3)]);
        assert_eq!(all.platform().drivers.len(), 2);
        assert_eq!(all.open(5).err(), Some(DeviceError::Lost));
    }

    #[test]
    fn machine_without_drivers_reports_first_error() {
        let missing = |cause: &str| SourceError::NoDevice(cause.to_owned());
        let none = MachineSource::open_all(vec![Err(missing("a")), Err(missing("b"))]);
        assert_eq!(none.err(), Some(missing("a")));
    }
}
