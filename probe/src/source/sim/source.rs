//! The simulated source: what `--source sim` reads.

use std::{path::Path, sync::Arc, thread, time::Duration};

use crate::{
    model::{Absence, GpuLink, Platform, Reading, SourceKind},
    source::{Device, DeviceError, Reporter, Source, SourceError},
};

use super::{Machine, Scenario, device::SimDevice};

/// How often a hung device looks whether its fault is over.
const HANG_POLL: Duration = Duration::from_millis(10);

/// Simulated GPUs as a [`Source`].
///
/// It honours a scenario's `lost` and `hang` faults and `init_error`; `latency`, `hidden` and `returns` are about
/// NVML's functions, of which it calls none.
#[derive(Debug, Clone)]
pub struct SimSource {
    machine: Arc<Machine>,
}

impl SimSource {
    /// Starts the scenario.
    pub fn new(scenario: Scenario) -> Self {
        Self { machine: Arc::new(Machine::start(scenario)) }
    }
}

impl Source for SimSource {
    fn platform(&self) -> Platform {
        Platform {
            source: SourceKind::Simulated,
            driver_version: Reading::Absent(Absence::Unknown),
            nvml_version: Reading::Absent(Absence::Unknown),
            cuda_version: Reading::Absent(Absence::Unknown),
        }
    }

    fn device_count(&self) -> Result<u32, SourceError> {
        let Machine { world, timeline, .. } = &*self.machine;
        match (world.scenario().init_error(timeline.elapsed_s()), world.gpu_count()) {
            (Some(9), _) => Err(SourceError::NoDriver),
            (Some(18), _) => Err(SourceError::VersionMismatch),
            (Some(4), _) => Err(SourceError::NoPermission),
            (Some(code), _) => Err(SourceError::Driver { code }),
            (None, 0) => Err(SourceError::NoDevice),
            (None, count) => Ok(count),
        }
    }

    fn open(&self, index: u32) -> Result<Box<dyn Device>, DeviceError> {
        if index >= self.machine.world.gpu_count() {
            // NVML_ERROR_INVALID_ARGUMENT, as the driver answers to an index that it does not have.
            return Err(DeviceError::Failed(Absence::DriverError { code: 2 }));
        }
        answer(&self.machine, index)?;
        Ok(Box::new(SimDevice::new(Arc::clone(&self.machine), index)))
    }

    fn is_asleep(&self, _index: u32, _sys_root: &Path) -> bool {
        false
    }

    fn reporter(&self) -> Option<Box<dyn Reporter>> {
        None
    }

    fn links(&self, gpus: &[u32]) -> Vec<GpuLink> {
        let mut links = Vec::new();
        for (at, a) in gpus.iter().enumerate() {
            for b in &gpus[at + 1..] {
                links.push(link(&self.machine, *a.min(b), *a.max(b)));
            }
        }
        links
    }
}

/// What lies between two GPUs, if both are there.
fn link(machine: &Machine, a: u32, b: u32) -> GpuLink {
    if answer(machine, a).is_err() || answer(machine, b).is_err() {
        return GpuLink { a, b, path: Reading::Absent(Absence::GpuLost), nvlinks: Reading::Absent(Absence::GpuLost) };
    }
    machine.world.link(a, b, machine.timeline.elapsed_ms())
}

/// Waits while a GPU hangs, then tells whether it is there.
pub(super) fn answer(machine: &Machine, index: u32) -> Result<(), DeviceError> {
    let scenario = machine.world.scenario();
    while scenario.hangs(Some(index), None, machine.timeline.elapsed_s()) {
        thread::sleep(HANG_POLL);
    }
    if scenario.is_lost(index, machine.timeline.elapsed_s()) { Err(DeviceError::Lost) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Board, GpuDetails, GpuSample, Health, PciPath};

    fn source(toml: &str) -> SimSource {
        SimSource::new(Scenario::from_toml(toml, "test.toml").unwrap())
    }

    fn blank(index: u32) -> GpuSample {
        GpuSample::absent(index, None, 0, Health::Ok, &Absence::WarmingUp)
    }

    fn absent(read: &impl serde::Serialize) -> usize {
        serde_json::to_string(read).unwrap().matches("absent").count()
    }

    #[test]
    fn everything_of_a_simulated_gpu_is_read_and_labelled() {
        let source = SimSource::new(Scenario::simple(2, 1));
        assert_eq!(source.platform().source, SourceKind::Simulated);
        assert_eq!(source.device_count(), Ok(2));
        let mut device = source.open(0).unwrap();
        assert!(device.identity().uuid.unwrap().starts_with("GPU-"));
        let mut sample = blank(0);
        device.read(&mut sample).unwrap();
        // An H200 has no fan.
        assert_eq!(absent(&sample), 1);
        let Board { numa_node, .. } = device.identity().board;
        assert_eq!((absent(&device.identity()), numa_node), (0, Reading::Now(0)));
        let mut details = GpuDetails::absent(0, None, 0, &Absence::WarmingUp);
        device.details(&mut details).unwrap();
        // Application clocks (two), retired pages, fans and accounting are what it does not have or do.
        assert_eq!(absent(&details), 5, "{details:?}");
        assert_eq!(details.nvlinks.value().map(Vec::len), Some(18));
    }

    #[test]
    fn every_pair_of_gpus_is_linked() {
        let links = SimSource::new(Scenario::simple(5, 1)).links(&[0, 1, 4]);
        let pairs: Vec<_> = links.iter().map(|link| (link.a, link.b, link.path.value().copied())).collect();
        let (node, system) = (Some(PciPath::Node), Some(PciPath::System));
        assert_eq!(pairs, [(0, 1, node), (0, 4, system), (1, 4, system)]);
        assert!(links.iter().all(|link| link.nvlinks == Reading::Now(18)));
    }

    #[test]
    fn what_the_scenario_does_not_say_of_a_process_is_unknown() {
        let source = source("[[process]]\ngpu = 0\npid = 77\nuser = \"ana\"");
        let mut sample = blank(0);
        source.open(0).unwrap().read(&mut sample).unwrap();
        let process = &sample.processes.value().unwrap()[0];
        assert_eq!(process.pid, 77);
        assert_eq!(process.memory_bytes, Reading::Absent(Absence::Unknown));
        assert_eq!(process.name, Reading::Absent(Absence::Unknown));
        assert_eq!(process.user, Reading::Now("ana".to_owned()));
    }

    #[test]
    fn a_lost_gpu_is_lost_and_its_neighbour_is_not() {
        let source = source("gpus = 2\n[[fault]]\ngpu = 0\nkind = \"lost\"\nfrom_s = 0");
        assert!(matches!(source.open(0), Err(DeviceError::Lost)));
        assert!(source.open(1).unwrap().read(&mut blank(1)).is_ok());
    }

    #[test]
    fn a_hung_gpu_answers_when_its_fault_is_over() {
        let source = source("[[fault]]\ngpu = 0\nkind = \"hang\"\nto_s = 0.3");
        source.open(0).unwrap();
        assert!(source.machine.timeline.elapsed_s() >= 0.3);
    }

    #[test]
    fn what_is_missing_is_told_apart() {
        assert_eq!(source("gpus = 0").device_count(), Err(SourceError::NoDevice));
        assert_eq!(source("init_error = { code = 9 }").device_count(), Err(SourceError::NoDriver));
        assert_eq!(source("init_error = { code = 999 }").device_count(), Err(SourceError::Driver { code: 999 }));
        assert!(matches!(source("").open(1), Err(DeviceError::Failed(_))));
    }
}
