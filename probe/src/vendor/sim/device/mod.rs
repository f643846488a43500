//! One simulated GPU, opened.

mod board;
mod details;
mod mig;
mod traces;

use std::sync::Arc;

use crate::{
    model::{
        Absence, Activity, Clocks, Gpu, GpuDetails, GpuSample, Health, MemorySample, NvLinks,
        PcieLink, Power, Process, Reading, Temperature, Trace, Utilization, Vendor, now_ms,
    },
    vendor::{AnswersReader, Device, DeviceError, ReadDepth},
};

use self::traces::Drains;
use super::{Counters, Machine, ProcessState, Timeline, answers, presence::answer};

pub(super) struct SimDevice {
    machine: Arc<Machine>,
    /// The GPU's index in the scenario.
    index: u32,
    /// The driver's index of the GPU.
    found_as: u32,
    drains: Drains,
}

impl SimDevice {
    pub(super) fn new(machine: Arc<Machine>, index: u32, found_as: u32) -> Self {
        Self {
            machine,
            index,
            found_as,
            drains: Drains::new(),
        }
    }
}

impl Device for SimDevice {
    fn identity(&mut self) -> Gpu {
        let identity = self.machine.world.identity(self.index);
        Gpu {
            index: self.found_as,
            vendor: Vendor::Nvidia,
            vendor_index: Some(self.found_as),
            uuid: Some(identity.uuid.clone()),
            name: Reading::Now(identity.name.clone()),
            pci_bus_id: Reading::Now(identity.pci_bus_id.clone()),
            board: board::read(identity),
            mig_devices: mig::devices(
                &self
                    .machine
                    .state(self.index, self.machine.timeline.elapsed_ms()),
            ),
        }
    }

    fn read(&mut self, sample: &mut GpuSample, _: ReadDepth) -> Result<(), DeviceError> {
        answer(&self.machine, self.index)?;
        let machine = &self.machine;
        let identity = machine.world.identity(self.index);
        let elapsed_ms = machine.timeline.elapsed_ms();
        let state = machine.state(self.index, elapsed_ms);
        // The driver does not say how much is used of a GPU that is divided.
        let divided = !state.mig.is_empty();
        let share = |percent: u32| where_supported(!divided, f64::from(percent));
        sample.utilization = Utilization {
            gpu_percent: share(state.gpu_percent),
            memory_percent: share(state.memory_percent),
            encoder_percent: share(state.encoder_percent),
            decoder_percent: share(state.decoder_percent),
            jpeg_percent: share(state.jpeg_percent),
            ofa_percent: share(state.ofa_percent),
        };
        sample.memory = MemorySample {
            total_bytes: Reading::Now(state.memory_total_bytes),
            used_bytes: Reading::Now(state.memory_used_bytes),
            reserved_bytes: Reading::Now(state.memory_reserved_bytes),
            free_bytes: Reading::Now(state.memory_free_bytes),
        };
        // Sensors have a resolution: milliwatts and whole degrees, as NVML gives them.
        sample.power = Power {
            draw_watts: Reading::Now(thousandths(state.power_watts)),
            instant_watts: Reading::Now(thousandths(state.power_instant_watts)),
            average_watts: Reading::Now(thousandths(state.power_watts)),
            energy_joules_total: Reading::Now(thousandths(
                machine.totals(self.index, elapsed_ms).energy_joules,
            )),
            limit_watts: Reading::Now(state.power_limit_watts),
        };
        sample.temperature = Temperature {
            gpu_celsius: Reading::Now(state.temperature_celsius.round()),
            memory_celsius: Reading::Now(state.memory_temperature_celsius.round()),
            margin_celsius: where_supported(identity.has_margin(), state.margin_celsius.round()),
        };
        sample.clocks = Clocks {
            graphics_mhz: Reading::Now(state.sm_mhz),
            sm_mhz: Reading::Now(state.sm_mhz),
            memory_mhz: Reading::Now(state.memory_mhz),
            video_mhz: Reading::Now(state.video_mhz),
        };
        sample.performance_state = Reading::Now(state.performance_state);
        sample.throttle_reasons = Reading::Now(state.throttle_reasons.clone());
        let has_links = identity.counts_activity && !identity.nvlinks.is_empty();
        let linked = |rate: f64| where_supported(has_links, rate.round());
        sample.pcie = PcieLink {
            generation: Reading::Now(state.pcie_generation),
            width: Reading::Now(state.pcie_width),
            // Without GPM there is still a call that measures for a while.
            tx_bytes_per_second: Reading::Now(state.counters.pcie_tx_bytes_per_second.round()),
            rx_bytes_per_second: Reading::Now(state.counters.pcie_rx_bytes_per_second.round()),
        };
        sample.nvlink = NvLinks {
            tx_bytes_per_second: linked(state.counters.nvlink_tx_bytes_per_second),
            rx_bytes_per_second: linked(state.counters.nvlink_rx_bytes_per_second),
        };
        sample.activity = where_supported(identity.counts_activity, activity(&state.counters));
        sample.fan_percent = where_supported(identity.fans > 0, state.fan_percent.into());
        sample.mig_devices = where_supported(identity.has_mig(), mig::samples(&state, identity));
        let processes = state
            .processes
            .iter()
            .map(|process| reading_of(process, divided, &machine.timeline));
        let mut processes: Vec<_> = processes.collect();
        processes.sort_by_key(|process| process.pid);
        sample.processes = Reading::Now(processes);
        Ok(())
    }

    fn details(&mut self, details: &mut GpuDetails) -> Result<(), DeviceError> {
        answer(&self.machine, self.index)?;
        details::read(&self.machine, self.index, details);
        Ok(())
    }

    fn answers(&self) -> Option<AnswersReader> {
        let (machine, gpu, index) = (Arc::clone(&self.machine), self.index, self.found_as);
        Some(Box::new(move || {
            let mut device = Self::new(Arc::clone(&machine), gpu, index);
            let mut sample =
                GpuSample::absent(index, None, now_ms(), Health::Ok, &Absence::NoAnswer);
            let mut details = GpuDetails::absent(index, None, now_ms(), &Absence::NoAnswer);
            device.read(&mut sample, ReadDepth::Full).ok()?;
            device.details(&mut details).ok()?;
            Some(answers::answers(&device.identity(), &sample, &details).into())
        }))
    }

    fn traces(&mut self) -> Vec<Trace> {
        if answer(&self.machine, self.index).is_err() {
            return Vec::new();
        }
        let mut traces = self.drains.take(
            &self.machine,
            self.index,
            self.machine.timeline.elapsed_ms(),
        );
        for trace in &mut traces {
            trace.index = self.found_as;
        }
        traces
    }
}

/// Sensors have a resolution.
fn thousandths(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

fn where_supported<T>(is_supported: bool, value: T) -> Reading<T> {
    is_supported
        .then_some(value)
        .ok_or(Absence::NotSupported)
        .into()
}

fn activity(counters: &Counters) -> Activity {
    let percent = |share: f64| {
        if share.is_finite() {
            Reading::Now((share * 100.0).round() / 100.0)
        } else {
            Reading::Absent(Absence::Unknown)
        }
    };
    Activity {
        graphics_percent: percent(counters.sm_percent),
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

fn reading_of(process: &ProcessState, divided: bool, timeline: &Timeline) -> Process {
    fn known<T>(value: Option<T>) -> Reading<T> {
        value.ok_or(Absence::Unknown).into()
    }
    let share = |percent: u32| where_supported(!divided, f64::from(percent));
    let text = |text: &Option<Arc<str>>| known(text.as_ref().map(ToString::to_string));
    Process {
        pid: process.pid,
        kind: process.kind,
        memory_bytes: known(process.memory_bytes),
        sm_percent: share(process.sm_percent),
        memory_percent: share(process.memory_percent),
        encoder_percent: share(process.encoder_percent),
        decoder_percent: share(process.decoder_percent),
        name: text(&process.name),
        program: None,
        command: text(&process.command),
        user: text(&process.user),
        host_memory_bytes: known(process.host_memory_bytes),
        traced: Reading::Now(process.traced),
        started_ms: Reading::Now(timeline.unix_ms(process.started_s)),
        mig: process.mig,
        mps: process.mps,
        owner: Reading::Now(process.owner.clone()),
    }
}
