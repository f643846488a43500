//! The simulated source: what `--source sim` reads.

use std::{sync::Arc, thread, time::Duration};

use crate::{
    model::{
        Absence, Activity, Board, Clocks, Gpu, GpuDetails, GpuLink, GpuSample, MemorySample, NvLinks, PcieLink,
        Platform, Power, Process, Reading, SourceKind, Temperature, Trace, Utilization,
    },
    source::{Device, DeviceError, Source, SourceError, Watcher},
};

use super::{Counters, Meters, ProcessState, Scenario, Timeline, World};

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

#[derive(Debug)]
struct Machine {
    world: World,
    timeline: Timeline,
    meters: Meters,
}

impl SimSource {
    /// Starts the scenario.
    pub fn new(scenario: Scenario) -> Self {
        let timeline = Timeline::begin(&scenario);
        let world = World::new(scenario);
        let meters = Meters::new(world.gpu_count(), timeline.elapsed_ms());
        Self { machine: Arc::new(Machine { world, timeline, meters }) }
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

    fn links(&self, _gpus: &[u32]) -> Vec<GpuLink> {
        Vec::new()
    }

    fn open(&self, index: u32) -> Result<Box<dyn Device>, DeviceError> {
        if index >= self.machine.world.gpu_count() {
            // NVML_ERROR_INVALID_ARGUMENT, as the driver answers to an index that it does not have.
            return Err(DeviceError::Failed(Absence::DriverError { code: 2 }));
        }
        self.machine.answer(index)?;
        Ok(Box::new(SimDevice { machine: Arc::clone(&self.machine), index }))
    }
}

impl Machine {
    /// Waits while the GPU hangs, then tells whether it is there.
    fn answer(&self, index: u32) -> Result<(), DeviceError> {
        let scenario = self.world.scenario();
        while scenario.hangs(Some(index), None, self.timeline.elapsed_s()) {
            thread::sleep(HANG_POLL);
        }
        if scenario.is_lost(index, self.timeline.elapsed_s()) { Err(DeviceError::Lost) } else { Ok(()) }
    }
}

/// One simulated GPU.
struct SimDevice {
    machine: Arc<Machine>,
    index: u32,
}

impl Device for SimDevice {
    fn identity(&mut self) -> Gpu {
        let identity = self.machine.world.identity(self.index);
        Gpu {
            index: self.index,
            uuid: Some(identity.uuid),
            name: Reading::Now(identity.name),
            pci_bus_id: Reading::Now(identity.pci_bus_id),
            board: Board::absent(&Absence::NotSupported),
            mig_devices: Vec::new(),
        }
    }

    fn read(&mut self, sample: &mut GpuSample) -> Result<(), DeviceError> {
        self.machine.answer(self.index)?;
        let Machine { world, timeline, meters } = &*self.machine;
        let elapsed_ms = timeline.elapsed_ms();
        let state = world.state(self.index, elapsed_ms);
        sample.utilization = Utilization {
            gpu_percent: Reading::Now(state.gpu_percent.into()),
            memory_percent: Reading::Now(state.memory_percent.into()),
            encoder_percent: Reading::Now(state.encoder_percent.into()),
            decoder_percent: Reading::Now(state.decoder_percent.into()),
            jpeg_percent: Reading::Absent(Absence::NotSupported),
            ofa_percent: Reading::Absent(Absence::NotSupported),
        };
        sample.memory = MemorySample {
            total_bytes: Reading::Now(state.memory_total_bytes),
            used_bytes: Reading::Now(state.memory_used_bytes),
            reserved_bytes: Reading::Now(state.memory_reserved_bytes),
            free_bytes: Reading::Now(state.memory_free_bytes),
        };
        // Sensors have a resolution: milliwatts and whole degrees, as NVML gives them.
        sample.power = Power {
            draw_watts: Reading::Now((state.power_watts * 1000.0).round() / 1000.0),
            instant_watts: Reading::Now((state.power_instant_watts * 1000.0).round() / 1000.0),
            average_watts: Reading::Absent(Absence::NotSupported),
            energy_joules_total: Reading::Now(meters.millijoules(world, self.index, elapsed_ms) as f64 / 1000.0),
            limit_watts: Reading::Now(state.power_limit_watts),
        };
        sample.temperature = Temperature {
            gpu_celsius: Reading::Now(state.temperature_celsius.round()),
            memory_celsius: Reading::Now(state.memory_temperature_celsius.round()),
            margin_celsius: Reading::Absent(Absence::NotSupported),
        };
        sample.clocks = Clocks {
            graphics_mhz: Reading::Now(state.sm_mhz),
            sm_mhz: Reading::Now(state.sm_mhz),
            memory_mhz: Reading::Now(state.memory_mhz),
            video_mhz: Reading::Now(state.video_mhz),
        };
        sample.performance_state = Reading::Now(state.performance_state);
        sample.throttle_reasons = Reading::Now(state.throttle_reasons);
        sample.pcie = PcieLink {
            generation: Reading::Now(state.pcie_generation),
            width: Reading::Now(state.pcie_width),
            tx_bytes_per_second: Reading::Now(state.counters.pcie_tx_bytes_per_second.round()),
            rx_bytes_per_second: Reading::Now(state.counters.pcie_rx_bytes_per_second.round()),
        };
        sample.nvlink = NvLinks {
            tx_bytes_per_second: Reading::Now(state.counters.nvlink_bytes_per_second.round()),
            rx_bytes_per_second: Reading::Now(state.counters.nvlink_bytes_per_second.round()),
        };
        sample.activity = Reading::Now(activity(&state.counters));
        let processes = state.processes.into_iter().map(|process| reading_of(process, timeline)).collect();
        sample.processes = Reading::Now(processes);
        Ok(())
    }

    fn details(&mut self, _details: &mut GpuDetails) -> Result<(), DeviceError> {
        self.machine.answer(self.index)
    }

    fn traces(&mut self) -> Vec<Trace> {
        Vec::new()
    }

    fn watcher(&mut self) -> Option<Box<dyn Watcher>> {
        None
    }
}

fn activity(counters: &Counters) -> Activity {
    let percent = |share: f64| Reading::Now((share * 100.0).round() / 100.0);
    Activity {
        sm_percent: percent(counters.sm_percent),
        occupancy_percent: percent(counters.occupancy_percent),
        tensor_percent: percent(counters.tensor_percent),
        tensor_half_percent: percent(counters.tensor_percent),
        tensor_integer_percent: percent(0.0),
        tensor_double_percent: percent(0.0),
        fp64_percent: percent(0.0),
        fp32_percent: percent(counters.fp32_percent),
        fp16_percent: percent(0.0),
        integer_percent: percent(counters.integer_percent),
        dram_bandwidth_percent: percent(counters.dram_bandwidth_percent),
    }
}

fn reading_of(process: ProcessState, timeline: &Timeline) -> Process {
    fn known<T>(value: Option<T>) -> Reading<T> {
        value.ok_or(Absence::Unknown).into()
    }
    Process {
        pid: process.pid,
        kind: process.kind,
        memory_bytes: known(process.memory_bytes),
        sm_percent: Reading::Now(process.sm_percent.into()),
        memory_percent: Reading::Now(process.memory_percent.into()),
        encoder_percent: Reading::Now(process.encoder_percent.into()),
        decoder_percent: Reading::Now(process.decoder_percent.into()),
        name: known(process.name),
        command: known(process.command),
        user: known(process.user),
        started_ms: Reading::Now(timeline.unix_ms(process.started_s)),
        mig: None,
        mps: false,
        owner: Reading::Now(process.owner),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Health;

    fn source(toml: &str) -> SimSource {
        SimSource::new(Scenario::from_toml(toml, "test.toml").unwrap())
    }

    fn blank(index: u32) -> GpuSample {
        GpuSample::absent(index, None, 0, Health::Ok, &Absence::WarmingUp)
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
        let json = serde_json::to_string(&sample).unwrap();
        assert!(!json.contains("absent"), "{json}");
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
