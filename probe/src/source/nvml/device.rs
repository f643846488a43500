//! One GPU through NVML: which call gives which reading.

use nvml_wrapper::{
    Device, Nvml,
    bitmasks::device::ThrottleReasons,
    enum_wrappers::device::{Clock, PerformanceState, TemperatureSensor},
};

use super::{ask::Asker, error::device_error, fields::FieldReadings, gpm::GpmReader, processes::ProcessReader, raw};
use crate::{
    model::{Absence, Board, Gpu, GpuDetails, GpuSample, MemorySample, Reading, ThrottleReason, Trace},
    source::{Device as ProbeDevice, DeviceError, Watcher},
};

/// One GPU, opened.
pub(super) struct NvmlDevice {
    nvml: &'static Nvml,
    device: Device<'static>,
    index: u32,
    asker: Asker,
    gpm: GpmReader,
    processes: ProcessReader,
}

impl NvmlDevice {
    /// `nvmlDeviceGetHandleByIndex_v2`, which initialises the GPU when it is the first to ask for it.
    pub(super) fn open(nvml: &'static Nvml, index: u32) -> Result<Self, DeviceError> {
        let device = nvml.device_by_index(index).map_err(|error| device_error(&error))?;
        Ok(Self {
            nvml,
            device,
            index,
            asker: Asker::default(),
            gpm: GpmReader::new(),
            processes: ProcessReader::new(),
        })
    }

    fn memory(&mut self) -> MemorySample {
        let Self { nvml, device, asker, .. } = self;
        match asker.ask("memory v2", || device.memory_info()) {
            Reading::Absent(Absence::NotSupported) => {
                let v1 = asker.ask("memory", || raw::memory_info_v1(nvml, device));
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
}

impl ProbeDevice for NvmlDevice {
    fn identity(&mut self) -> Gpu {
        let Self { device, asker, .. } = self;
        Gpu {
            index: self.index,
            uuid: asker.ask("UUID", || device.uuid()).value().cloned(),
            name: asker.ask("name", || device.name()),
            pci_bus_id: asker.ask("PCI bus id", || device.pci_info()).map(|pci| pci.bus_id),
            board: Board::absent(&Absence::NotSupported),
            mig_devices: Vec::new(),
        }
    }

    fn read(&mut self, sample: &mut GpuSample) -> Result<(), DeviceError> {
        sample.memory = self.memory();
        let Self { nvml, device, asker, gpm, processes, .. } = self;

        let rates = asker.ask("utilization", || device.utilization_rates());
        sample.utilization.gpu_percent = rates.clone().map(|rates| f64::from(rates.gpu));
        sample.utilization.memory_percent = rates.map(|rates| f64::from(rates.memory));
        sample.utilization.encoder_percent =
            asker.ask("encoder", || device.encoder_utilization()).map(|encoder| f64::from(encoder.utilization));
        sample.utilization.decoder_percent =
            asker.ask("decoder", || device.decoder_utilization()).map(|decoder| f64::from(decoder.utilization));

        sample.power.draw_watts = asker.ask("power", || device.power_usage()).map(watts);
        sample.power.energy_joules_total =
            asker.ask("energy", || device.total_energy_consumption()).map(|millijoules| millijoules as f64 / 1000.0);
        sample.power.limit_watts = asker.ask("power limit", || device.enforced_power_limit()).map(watts);
        sample.temperature.gpu_celsius =
            asker.ask("temperature", || device.temperature(TemperatureSensor::Gpu)).map(f64::from);
        sample.clocks.sm_mhz = asker.ask("SM clock", || device.clock_info(Clock::SM));
        sample.clocks.memory_mhz = asker.ask("memory clock", || device.clock_info(Clock::Memory));
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
        sample.temperature.memory_celsius = fields.memory_celsius;

        let counted = gpm.read(nvml, device, asker);
        sample.activity = counted.activity;
        sample.pcie.tx_bytes_per_second = counted.pcie_tx;
        sample.pcie.rx_bytes_per_second = counted.pcie_rx;
        sample.nvlink.tx_bytes_per_second = counted.nvlink_tx;
        sample.nvlink.rx_bytes_per_second = counted.nvlink_rx;

        sample.processes = processes.read(nvml, device, asker);
        if asker.take_lost() { Err(DeviceError::Lost) } else { Ok(()) }
    }

    fn details(&mut self, _details: &mut GpuDetails) -> Result<(), DeviceError> {
        Ok(())
    }

    fn traces(&mut self) -> Vec<Trace> {
        Vec::new()
    }

    fn watcher(&mut self) -> Option<Box<dyn Watcher>> {
        None
    }
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
