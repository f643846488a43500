//! One GPU through NVML: which call gives which reading.

use std::time::Duration;

use nvml_wrapper::{
    Device, Nvml,
    bitmasks::device::ThrottleReasons,
    enum_wrappers::device::{Clock, PerformanceState, TemperatureSensor},
};

use super::{
    LateAnswers,
    ask::Asker,
    details,
    error::device_error,
    fans,
    fields::FieldReadings,
    gpm::GpmReader,
    identity,
    link_rates::{LinkRateReader, NvLinkRates},
    links::LinkReader,
    mig::MigReader,
    paced::Paced,
    pcie::{PcieRates, PcieWatch},
    processes::ProcessReader,
    raw,
    traces::TraceReader,
};
use crate::{
    model::{Absence, Gpu, GpuDetails, GpuSample, MemorySample, Reading, ThrottleReason, Trace},
    question::{Answer, Question},
    source::{Device as ProbeDevice, DeviceError, Extent},
};

/// The counter moves every 100 ms, and asking costs 4 ms, more than all the rest together.
const ENERGY_EVERY: Duration = Duration::from_secs(5);

/// It follows the chip's temperature, and asking costs 1.2 ms.
const MARGIN_EVERY: Duration = Duration::from_secs(5);

/// One GPU, opened.
pub(super) struct NvmlDevice {
    nvml: &'static Nvml,
    answers: LateAnswers,
    device: Device<'static>,
    asker: Asker,
    identity: Gpu,
    /// Whether the identity has its board.
    board_is_read: bool,
    energy: Paced<f64>,
    margin: Paced<f64>,
    gpm: GpmReader,
    pcie: Option<PcieWatch>,
    mig: MigReader,
    processes: ProcessReader,
    links: LinkReader,
    link_rates: LinkRateReader,
    traces: TraceReader,
}

impl NvmlDevice {
    /// `nvmlDeviceGetHandleByIndex_v2`, which initialises the GPU when it is the first to ask for it.
    pub(super) fn open(nvml: &'static Nvml, answers: LateAnswers, index: u32) -> Result<Self, DeviceError> {
        let device = nvml.device_by_index(index).map_err(|error| device_error(&error))?;
        let mut asker = Asker::default();
        let mut mig = MigReader::new();
        mig.look(&device, &mut asker);
        let identity = Gpu { mig_devices: mig.identities(), ..identity::read(&device, index, &mut asker) };
        Ok(Self {
            nvml,
            answers,
            device,
            asker,
            identity,
            board_is_read: false,
            energy: Paced::new(ENERGY_EVERY),
            margin: Paced::new(MARGIN_EVERY),
            gpm: GpmReader::new(),
            pcie: None,
            mig,
            processes: ProcessReader::new(),
            links: LinkReader::new(),
            link_rates: LinkRateReader::new(),
            traces: TraceReader::new(),
        })
    }

    /// Looks for MIG devices anew. What the GPU can tell changes with them.
    fn look_for_mig_devices(&mut self) {
        if self.mig.look(&self.device, &mut self.asker) {
            self.identity.mig_devices = self.mig.identities();
            self.asker.forget();
        }
    }

    fn memory(&mut self) -> MemorySample {
        let Self { device, asker, .. } = self;
        match asker.ask("memory v2", || device.memory_info()) {
            Reading::Absent(Absence::NotSupported) => {
                let v1 = asker.ask("memory", || raw::memory_info_v1(device));
                MemorySample {
                    total_bytes: v1.clone().map(|memory| memory.total),
                    used_bytes: v1.clone().map(|memory| memory.used),
                    reserved_bytes: Reading::Absent(Absence::NotSupported),
                    free_bytes: v1.map(|memory| memory.free),
                }
            }
            v2 => MemorySample {
                total_bytes: v2.clone().map(|memory| memory.total),
                used_bytes: v2.clone().map(|memory| memory.used),
                reserved_bytes: v2.clone().map(|memory| memory.reserved),
                free_bytes: v2.map(|memory| memory.free),
            },
        }
    }

    /// GPM's rates; of a GPU without GPM, those of the links' own counters.
    fn nvlink(&mut self, counted: NvLinkRates) -> NvLinkRates {
        if counted.tx == Reading::Absent(Absence::NotSupported) {
            self.link_rates.read(&self.device, &mut self.asker)
        } else {
            counted
        }
    }

    /// GPM's rates; of a GPU without GPM, those that a thread of its own waits for.
    fn pcie(&mut self, counted: PcieRates) -> PcieRates {
        if counted.tx != Reading::Absent(Absence::NotSupported) {
            self.pcie = None;
            return counted;
        }
        if self.pcie.is_none() {
            self.pcie = PcieWatch::start(self.nvml, self.identity.index);
        }
        self.pcie.as_ref().map_or(counted, PcieWatch::latest)
    }

    /// What costs little, most of it answered out of a cache inside the library.
    fn plain(&mut self, sample: &mut GpuSample) {
        sample.memory = self.memory();
        let Self { device, asker, processes, .. } = self;

        let rates = asker.ask("utilization", || device.utilization_rates());
        sample.utilization.gpu_percent = rates.clone().map(|rates| f64::from(rates.gpu));
        sample.utilization.memory_percent = rates.map(|rates| f64::from(rates.memory));
        sample.utilization.encoder_percent =
            asker.ask("encoder", || device.encoder_utilization()).map(|encoder| f64::from(encoder.utilization));
        sample.utilization.decoder_percent =
            asker.ask("decoder", || device.decoder_utilization()).map(|decoder| f64::from(decoder.utilization));
        sample.utilization.jpeg_percent = asker.ask("JPEG", || raw::jpeg_utilization(device)).map(f64::from);
        sample.utilization.ofa_percent = asker.ask("OFA", || raw::ofa_utilization(device)).map(f64::from);

        sample.power.draw_watts = asker.ask("power", || device.power_usage()).map(watts);
        sample.power.limit_watts = asker.ask("power limit", || device.enforced_power_limit()).map(watts);
        sample.temperature.gpu_celsius =
            asker.ask("temperature", || device.temperature(TemperatureSensor::Gpu)).map(f64::from);
        sample.clocks.graphics_mhz = asker.ask("graphics clock", || device.clock_info(Clock::Graphics));
        sample.clocks.sm_mhz = asker.ask("SM clock", || device.clock_info(Clock::SM));
        sample.clocks.memory_mhz = asker.ask("memory clock", || device.clock_info(Clock::Memory));
        sample.clocks.video_mhz = asker.ask("video clock", || device.clock_info(Clock::Video));
        sample.performance_state = match asker.ask("P-state", || device.performance_state()) {
            Reading::Now(PerformanceState::Unknown) => Reading::Absent(Absence::Unknown),
            state => state.map(|state| state.as_c() as u8),
        };
        sample.throttle_reasons =
            asker.ask("throttle reasons", || device.current_throttle_reasons()).map(throttle_reasons);
        sample.pcie.generation = asker.ask("PCIe generation", || device.current_pcie_link_gen());
        sample.pcie.width = asker.ask("PCIe width", || device.current_pcie_link_width());

        let fields = FieldReadings::read(device, asker);
        sample.power.instant_watts = fields.instant_watts;
        sample.power.average_watts = fields.average_watts;
        sample.temperature.memory_celsius = fields.memory_celsius;

        sample.fan_percent = asker.ask("fan", || fans::speed(device, 0)).map(f64::from);
        sample.processes = processes.read(device, asker);
    }

    /// What costs the driver milliseconds, or comes of two readings.
    fn costly(&mut self, sample: &mut GpuSample) {
        let Self { nvml, device, asker, gpm, energy, margin, .. } = self;
        sample.power.energy_joules_total = energy.read(|| joules(device, asker));
        sample.temperature.margin_celsius =
            margin.read(|| asker.ask("margin temperature", || raw::margin_celsius(device)).map(f64::from));
        let counted = gpm.read(nvml, device, None, asker);
        sample.activity = counted.activity;
        let NvLinkRates { tx, rx } = self.nvlink(NvLinkRates { tx: counted.nvlink_tx, rx: counted.nvlink_rx });
        sample.nvlink.tx_bytes_per_second = tx;
        sample.nvlink.rx_bytes_per_second = rx;
        let PcieRates { tx, rx } = self.pcie(PcieRates { tx: counted.pcie_tx, rx: counted.pcie_rx });
        sample.pcie.tx_bytes_per_second = tx;
        sample.pcie.rx_bytes_per_second = rx;
    }
}

impl ProbeDevice for NvmlDevice {
    fn identity(&mut self) -> Gpu {
        // A passing error while it was opened must not leave it nameless for good.
        if self.identity.uuid.is_none() {
            let Gpu { uuid, name, pci_bus_id, .. } = identity::read(&self.device, self.identity.index, &mut self.asker);
            self.identity = Gpu { uuid, name, pci_bus_id, ..self.identity.clone() };
        }
        self.identity.clone()
    }

    fn read(&mut self, sample: &mut GpuSample, extent: Extent) -> Result<(), DeviceError> {
        self.plain(sample);
        match extent {
            Extent::Whole => self.costly(sample),
            Extent::Glance => needs_a_second_look(sample),
            Extent::Metered => {
                needs_a_second_look(sample);
                sample.power.energy_joules_total = joules(&self.device, &mut self.asker);
            }
        }
        let (samples, gone) = self.mig.read(self.nvml, &self.device, extent, &mut self.asker);
        sample.mig_devices = samples;
        if gone {
            self.look_for_mig_devices();
        }
        self.asker.verdict()
    }

    fn details(&mut self, details: &mut GpuDetails) -> Result<(), DeviceError> {
        if !std::mem::replace(&mut self.board_is_read, true) {
            let bus_id = self.identity.pci_bus_id.value();
            self.identity.board = identity::board(&self.device, bus_id, &mut self.asker);
        }
        self.look_for_mig_devices();
        details::read(self.nvml, &self.device, &mut self.links, self.mig.mode(), &mut self.asker, details);
        self.asker.verdict()
    }

    fn ask(&mut self, questions: &[Question]) -> Vec<(Question, Answer)> {
        self.answers.ask(self.identity.index, questions)
    }

    fn traces(&mut self) -> Vec<Trace> {
        let Gpu { index, uuid, .. } = &self.identity;
        let mut traces = self.traces.read(&self.device, &mut self.asker);
        for trace in &mut traces {
            (trace.index, trace.uuid) = (*index, uuid.clone());
        }
        traces
    }
}

/// What one look cannot tell.
fn needs_a_second_look(sample: &mut GpuSample) {
    let rate = || Reading::Absent(Absence::WarmingUp);
    sample.activity = Reading::Absent(Absence::WarmingUp);
    (sample.nvlink.tx_bytes_per_second, sample.nvlink.rx_bytes_per_second) = (rate(), rate());
    (sample.pcie.tx_bytes_per_second, sample.pcie.rx_bytes_per_second) = (rate(), rate());
}

fn joules(device: &Device<'_>, asker: &mut Asker) -> Reading<f64> {
    asker.ask("energy", || device.total_energy_consumption()).map(|millijoules| millijoules as f64 / 1000.0)
}

fn watts(milliwatts: u32) -> f64 {
    f64::from(milliwatts) / 1000.0
}

fn throttle_reasons(bits: ThrottleReasons) -> Vec<ThrottleReason> {
    const NAMES: [(ThrottleReasons, ThrottleReason); 9] = [
        (ThrottleReasons::GPU_IDLE, ThrottleReason::GpuIdle),
        (ThrottleReasons::APPLICATIONS_CLOCKS_SETTING, ThrottleReason::ApplicationsClocksSetting),
        (ThrottleReasons::SW_POWER_CAP, ThrottleReason::SwPowerCap),
        (ThrottleReasons::HW_SLOWDOWN, ThrottleReason::HwSlowdown),
        (ThrottleReasons::SYNC_BOOST, ThrottleReason::SyncBoost),
        (ThrottleReasons::SW_THERMAL_SLOWDOWN, ThrottleReason::SwThermalSlowdown),
        (ThrottleReasons::HW_THERMAL_SLOWDOWN, ThrottleReason::HwThermalSlowdown),
        (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, ThrottleReason::HwPowerBrakeSlowdown),
        (ThrottleReasons::DISPLAY_CLOCK_SETTING, ThrottleReason::DisplayClockSetting),
    ];
    NAMES.into_iter().filter(|(bit, _)| bits.contains(*bit)).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttle_bits_become_names_in_their_order() {
        let bits = ThrottleReasons::SW_POWER_CAP | ThrottleReasons::HW_THERMAL_SLOWDOWN;
        assert_eq!(throttle_reasons(bits), [ThrottleReason::SwPowerCap, ThrottleReason::HwThermalSlowdown]);
        assert_eq!(throttle_reasons(ThrottleReasons::empty()), []);
    }
}
