//! The simulated source: what `--source sim` reads.

use std::{path::Path, sync::Arc};

use crate::{
    model::{Absence, Driver, GpuLink, Platform, Reading, Vendor},
    vendor::{
        Device, DeviceError, ErrorLog, Reporter, Source, SourceError,
        nvml::{
            error::device_error,
            kernel_log::KernelLog,
            query::Code,
            start::{no_device, source_error},
        },
    },
};

use super::{
    Machine, Scenario,
    device::SimDevice,
    presence::{VERSION_MISMATCH, answer},
    reporter::SimReporter,
};

/// Simulated GPUs as a [`Source`].
///
/// It honors what a scenario says of GPUs, and `init_error`; `latency`, `hidden`, `returns` and `crash` are about NVML's
/// functions, of which it calls none.
#[derive(Debug, Clone)]
pub struct SimSource {
    machine: Arc<Machine>,
}

impl SimSource {
    /// Starts the scenario.
    pub fn new(scenario: Scenario) -> Self {
        Self {
            machine: Arc::new(Machine::start(scenario)),
        }
    }
}

impl Source for SimSource {
    fn platform(&self) -> Platform {
        let unknown = || Reading::Absent(Absence::Unknown);
        Platform {
            is_simulated: true,
            drivers: vec![Driver {
                vendor: Vendor::Nvidia,
                version: unknown(),
                library_version: unknown(),
                cuda_version: unknown(),
            }],
        }
    }

    fn device_count(&self) -> Result<u32, SourceError> {
        let Machine {
            world, timeline, ..
        } = &*self.machine;
        let seconds = timeline.elapsed_s();
        if world.scenario().is_mismatched(seconds) {
            return Err(source_error(VERSION_MISMATCH));
        }
        match (
            world.scenario().init_error(seconds),
            self.machine.found.len(),
        ) {
            (Some(code), _) => Err(source_error(code)),
            (None, 0) => Err(no_device()),
            (None, count) => Ok(count as u32),
        }
    }

    fn open(&self, index: u32) -> Result<Box<dyn Device>, DeviceError> {
        let Some(gpu) = self.machine.found.get(index as usize) else {
            return Err(device_error(Code::INVALID_ARGUMENT));
        };
        answer(&self.machine, *gpu)?;
        Ok(Box::new(SimDevice::new(
            Arc::clone(&self.machine),
            *gpu,
            index,
        )))
    }

    fn is_asleep(&self, _index: u32, _sys_root: &Path) -> bool {
        false
    }

    fn reporter(&self) -> Option<Box<dyn Reporter>> {
        Some(Box::new(SimReporter::new(Arc::clone(&self.machine))))
    }

    /// A log in the format of NVIDIA's driver, which tests write.
    fn error_logs(&self, path: &Path) -> Vec<Box<dyn ErrorLog>> {
        let log = KernelLog::open(path).ok();
        log.into_iter().map(|log| Box::new(log) as _).collect()
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

fn link(machine: &Machine, a: u32, b: u32) -> GpuLink {
    let [gpu, other] = [a, b].map(|index| machine.found[index as usize]);
    if answer(machine, gpu).is_err() || answer(machine, other).is_err() {
        return GpuLink {
            a,
            b,
            path: Reading::Absent(Absence::GpuLost),
            nvlinks: Reading::Absent(Absence::GpuLost),
        };
    }
    GpuLink {
        a,
        b,
        ..machine.world.link(gpu, other)
    }
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use super::*;
    use crate::{
        model::{Board, GpuDetails, GpuSample, Health, PciPath},
        vendor::ReadDepth,
    };

    fn source(toml: &str) -> SimSource {
        SimSource::new(Scenario::from_toml(toml, "test.toml").unwrap())
    }

    fn blank(index: u32) -> GpuSample {
        GpuSample::absent(index, None, 0, Health::Ok, &Absence::WarmingUp)
    }

    fn absent(read: &impl serde::Serialize) -> usize {
        serde_json::to_string(read)
            .unwrap()
            .matches("absent")
            .count()
    }

    #[test]
    fn everything_of_a_simulated_gpu_is_read_and_labeled() {
        let source = SimSource::new(Scenario::simple(2, 1));
        assert!(source.platform().is_simulated);
        assert_eq!(source.device_count(), Ok(2));
        let mut device = source.open(0).unwrap();
        assert!(device.identity().uuid.unwrap().starts_with("GPU-"));
        let mut sample = blank(0);
        device.read(&mut sample, ReadDepth::Full).unwrap();
        // An H200 has no fan.
        assert_eq!(absent(&sample), 1);
        let Board { numa_node, .. } = device.identity().board;
        assert_eq!(
            (absent(&device.identity()), numa_node),
            (0, Reading::Now(0))
        );
        let mut details = GpuDetails::absent(0, None, 0, &Absence::WarmingUp);
        device.details(&mut details).unwrap();
        // Retired pages, fans and accounting are what it does not have or do.
        assert_eq!(absent(&details), 3, "{details:?}");
        assert_eq!(details.nvlinks.value().map(Vec::len), Some(18));
    }

    #[test]
    fn a_geforce_has_fans_and_none_of_what_data_centers_want() {
        let source = source(
            "[[gpu]]\nindex = 0\nname = \"NVIDIA GeForce RTX 4090\"\narchitecture = \"ada\"",
        );
        let mut device = source.open(0).unwrap();
        let (mut sample, mut details) = (
            blank(0),
            GpuDetails::absent(0, None, 0, &Absence::WarmingUp),
        );
        device.read(&mut sample, ReadDepth::Full).unwrap();
        device.details(&mut details).unwrap();
        assert!(
            sample.fan_percent.value().is_some()
                && details.fans.value().is_some_and(|fans| fans.len() == 2)
        );
        let lacks = |absent: bool| assert!(absent, "{sample:?} {details:?}");
        lacks(sample.temperature.margin_celsius == Reading::Absent(Absence::NotSupported));
        lacks(sample.mig_devices == Reading::Absent(Absence::NotSupported));
        lacks(sample.activity == Reading::Absent(Absence::NotSupported));
        lacks(details.ecc.volatile.corrected_total == Reading::Absent(Absence::NotSupported));
        lacks(details.remapped_rows == Reading::Absent(Absence::NotSupported));
        lacks(details.retired_pages == Reading::Absent(Absence::NotSupported));
        lacks(device.identity().board.serial == Reading::Absent(Absence::NotSupported));
    }

    #[test]
    fn every_pair_of_gpus_is_linked() {
        let links = SimSource::new(Scenario::simple(5, 1)).links(&[0, 1, 4]);
        let pairs: Vec<_> = links
            .iter()
            .map(|link| (link.a, link.b, link.path.value().copied()))
            .collect();
        let (node, system) = (Some(PciPath::Node), Some(PciPath::System));
        assert_eq!(pairs, [(0, 1, node), (0, 4, system), (1, 4, system)]);
        assert!(links.iter().all(|link| link.nvlinks == Reading::Now(18)));
    }

    #[test]
    fn what_the_scenario_does_not_say_of_a_process_is_unknown() {
        let source = source("[[process]]\ngpu = 0\npid = 77\nuser = \"ana\"");
        let mut sample = blank(0);
        source
            .open(0)
            .unwrap()
            .read(&mut sample, ReadDepth::Full)
            .unwrap();
        let process = &sample.processes.value().unwrap()[0];
        assert_eq!(process.pid, 77);
        assert_eq!(process.memory_bytes, Reading::Absent(Absence::Unknown));
        assert_eq!(process.name, Reading::Absent(Absence::Unknown));
        assert_eq!(process.host_memory_bytes, Reading::Absent(Absence::Unknown));
        assert_eq!(process.user, Reading::Now("ana".to_owned()));
    }

    #[test]
    fn a_process_holds_the_host_memory_of_the_scenario_or_of_a_program_of_its_kind() {
        let held = |source: SimSource| {
            let mut sample = blank(0);
            source
                .open(0)
                .unwrap()
                .read(&mut sample, ReadDepth::Full)
                .unwrap();
            sample.processes.value().unwrap()[0]
                .host_memory_bytes
                .clone()
        };
        let given = source("[[process]]\ngpu = 0\npid = 77\nhost_memory = \"3 GiB\"");
        assert_eq!(held(given), Reading::Now(3 << 30));
        let invented = held(SimSource::new(Scenario::simple(1, 1)));
        assert!(
            invented
                .value()
                .is_some_and(|bytes| (1 << 29..24 << 30).contains(bytes)),
            "{invented:?}"
        );
    }

    #[test]
    fn a_lost_gpu_is_lost_and_its_neighbor_is_not() {
        let source = source("gpus = 2\n[[fault]]\ngpu = 0\nkind = \"lost\"\nfrom_s = 0");
        assert!(matches!(source.open(0), Err(DeviceError::Lost)));
        assert!(
            source
                .open(1)
                .unwrap()
                .read(&mut blank(1), ReadDepth::Full)
                .is_ok()
        );
    }

    #[test]
    fn failing_gpu_does_not_affect_its_neighbor() {
        let source = source("gpus = 2\n[[fault]]\ngpu = 0\nkind = \"returns\"\ncode = 16\n");
        let error = source.open(0).err().unwrap();
        assert!(
            matches!(
                error,
                DeviceError::Failed {
                    reason: Absence::DriverError { code: 16 },
                    ..
                }
            ),
            "{error:?}"
        );
        assert!(
            error.to_string().contains(
                "needs a reset (NVML error 16); end the programs on it, then `gpumon pause`"
            ),
            "{error}"
        );
        assert!(
            source
                .open(1)
                .unwrap()
                .read(&mut blank(1), ReadDepth::Full)
                .is_ok()
        );
    }

    #[test]
    fn driver_counts_gpus_at_its_start() {
        let source =
            source("gpus = 3\n[[gpu]]\nindex = 0\nfrom_s = 900\n[[gpu]]\nindex = 1\nto_s = 0.3\n");
        assert_eq!(source.device_count(), Ok(2));
        let mut device = source.open(0).unwrap();
        assert_eq!(
            (device.identity().index, device.identity().pci_bus_id),
            (0, Reading::Now("00000000:11:00.0".into()))
        );
        thread::sleep(Duration::from_millis(350));
        assert_eq!(
            device.read(&mut blank(0), ReadDepth::Full),
            Err(DeviceError::Lost),
            "it was taken out"
        );
        assert_eq!(
            (
                source.device_count(),
                source.open(1).unwrap().identity().index
            ),
            (Ok(2), 1)
        );
    }

    #[test]
    fn a_driver_that_was_replaced_fails_until_it_is_right_again() {
        let source = source("[[fault]]\nkind = \"mismatch\"\nto_s = 0.2");
        assert!(matches!(
            source.device_count(),
            Err(SourceError::VersionMismatch(_))
        ));
        assert!(matches!(
            source.open(0),
            Err(DeviceError::DriverReplaced { code: 18, .. })
        ));
        thread::sleep(Duration::from_millis(250));
        assert!(source.open(0).is_ok());
    }

    #[test]
    fn a_divided_gpu_says_what_its_parts_do() {
        let source = source(
            "start_ms = 1_700_000_000_000\n[[gpu]]\nindex = 0\n\
             mig = [{ profile = \"1g.18gb\", gpu_instance = 7 }, { profile = \"3g.71gb\", gpu_instance = 2 }]\n\
             [[process]]\ngpu = 0\npid = 5\nmemory = \"1 GiB\"\nsm_percent = 70\ngpu_instance = 2\n",
        );
        let mut device = source.open(0).unwrap();
        let mut sample = blank(0);
        device.read(&mut sample, ReadDepth::Full).unwrap();
        assert_eq!(
            sample.utilization.gpu_percent,
            Reading::Absent(Absence::NotSupported)
        );
        let instances = sample.mig_devices.value().unwrap();
        let used = instances.iter().map(|own| {
            (
                own.instance.gpu_instance,
                own.memory.used_bytes.value().copied(),
            )
        });
        assert_eq!(used.collect::<Vec<_>>(), [(7, Some(0)), (2, Some(1 << 30))]);
        let sm = instances[1]
            .activity
            .value()
            .unwrap()
            .sm_percent
            .value()
            .copied();
        assert!(
            sm.is_some_and(|percent| (60.0..70.0).contains(&percent)),
            "{sm:?}"
        );
        let whole = sample.activity.value().unwrap().sm_percent.value().copied();
        assert!(
            whole.is_some_and(|percent| (25.0..30.0).contains(&percent)),
            "{whole:?}"
        );
        let process = &sample.processes.value().unwrap()[0];
        assert_eq!(process.sm_percent, Reading::Absent(Absence::NotSupported));
        assert_eq!(process.mig, Some(instances[1].instance));
        let devices = device.identity().mig_devices;
        assert_eq!(
            (devices[1].uuid.as_str(), &devices[1].multiprocessors),
            (&*instances[1].uuid, &Reading::Now(60))
        );
        assert_eq!(device.traces().len(), 1);
    }

    #[test]
    fn a_hung_gpu_answers_when_its_fault_is_over() {
        let source = source("[[fault]]\ngpu = 0\nkind = \"hang\"\nto_s = 0.3");
        source.open(0).unwrap();
        assert!(source.machine.timeline.elapsed_s() >= 0.3);
    }

    #[test]
    fn what_is_missing_is_told_apart() {
        assert!(matches!(
            source("gpus = 0").device_count(),
            Err(SourceError::NoDevice(_))
        ));
        assert!(matches!(
            source("init_error = { code = 9 }").device_count(),
            Err(SourceError::NoDriver(_))
        ));
        assert!(matches!(
            source("init_error = { code = 999 }").device_count(),
            Err(SourceError::Driver(_))
        ));
        assert!(matches!(
            source("").open(1),
            Err(DeviceError::Failed { .. })
        ));
    }
}
