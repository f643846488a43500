//! Reading of a single Intel GPU's sensors, memory, and processes.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    model::{
        Absence, Board, EnergySource, Fan, Gpu, GpuDetails, GpuSample, MaxClocks, PowerLimits,
        Reading, Thresholds,
        ThrottleReason::{
            self, CurrentLimit, OtherLimit, PowerLimit, Prochot, RegulatorThermalLimit,
            ThermalLimit,
        },
        Vendor,
    },
    process_stat::is_first_pid_namespace,
    vendor::{
        Device, DeviceError, MachineMemory, ReadDepth,
        drm::{Attributes, Card, Clients, Hwmon, Names, PciePort, Usage},
    },
};

/// The maximum age of a process scan. `SCAN_PATIENCE` is the maximum wait for a scan, and
/// `FIRST_SCAN_PATIENCE` the maximum wait for the first scan.
const SCAN_AGE: Duration = Duration::from_millis(400);
const SCAN_PATIENCE: Duration = Duration::from_millis(100);
const FIRST_SCAN_PATIENCE: Duration = Duration::from_millis(500);

/// A GPU counts as idle if it was awake for at most this share of the time, in percent. The share
/// is not 0, because each reading keeps the card awake for a while.
const MAX_IDLE_PERCENT: f64 = 20.0;

/// The PCI bus ID that an integrated GPU always has.
const INTEGRATED_BUS_ID: &str = "00000000:00:02.0";

/// The names used in the `fdinfo` files of both drivers.
static NAMES: Names = Names {
    memory: &["vram", "local"],
    shared_memory: &["system", "gtt", "stolen"],
    graphics: &["render", "rcs"],
    compute: &["compute", "ccs"],
    encoders: &["video-enhance", "vecs"],
    decoders: &["video", "vcs"],
};

/// The suffixes of the throttle files' names, each with the reason for reduced clocks that the file
/// reports.
const REASONS: [(&str, ThrottleReason); 11] = [
    ("prochot", Prochot),
    ("pl1", PowerLimit),
    ("pl2", PowerLimit),
    ("pl4", PowerLimit),
    ("thermal", ThermalLimit),
    ("soc_thermal", ThermalLimit),
    ("ratl", ThermalLimit),
    ("vr_thermalert", RegulatorThermalLimit),
    ("vr_thermal", RegulatorThermalLimit),
    ("vr_tdc", CurrentLimit),
    ("iccmax", CurrentLimit),
];

/// One Intel GPU: the files of its card, and the state kept between readings.
pub(super) struct IntelDevice {
    card: Card,
    identity: Gpu,
    hwmon: Hwmon,
    port: PciePort,
    engine: EngineFiles,
    is_integrated: bool,
    proc_root: PathBuf,
    clients: Arc<Clients>,
    usage: Usage,
    earlier: Option<CounterReadings>,
    /// The last sample and its time. This sample is returned again while the card is left alone so
    /// that the system can suspend it.
    last: Option<(Instant, GpuSample)>,
    /// Whether the last reading skipped the card, so that the system can suspend it.
    is_resting: bool,
    /// The last details. They are returned again while the card is left alone.
    last_details: Option<GpuDetails>,
    /// The name of the energy counter's file. On some boards, the card's counter is always 0, so
    /// the package's counter is used.
    energy_file: Option<&'static str>,
}

/// The files of the graphics engine. The file names differ between the two drivers.
struct EngineFiles {
    clock: Attributes,
    /// The file names of the current and the maximum clock.
    clock_names: [&'static str; 2],
    idle: Attributes,
    idle_name: &'static str,
    throttle: Attributes,
    throttle_prefix: &'static str,
}

/// The values of several counters, read at the same time.
#[derive(Debug, Clone, Copy)]
struct CounterReadings {
    at: Instant,
    energy_joules: Option<f64>,
    idle_ms: Option<u64>,
}

impl EngineFiles {
    fn find(card: &Card) -> Self {
        let device = card.device.folder();
        if card.driver == "xe" {
            let engine = device.join("tile0/gt0");
            return Self {
                clock: Attributes::new(engine.join("freq0")),
                clock_names: ["act_freq", "rp0_freq"],
                idle: Attributes::new(engine.join("gtidle")),
                idle_name: "idle_residency_ms",
                throttle: Attributes::new(engine.join("freq0/throttle")),
                throttle_prefix: "reason_",
            };
        }
        let engine = Attributes::new(card.folder().join("gt/gt0"));
        Self {
            clock: engine.clone(),
            clock_names: ["rps_act_freq_mhz", "rps_RP0_freq_mhz"],
            idle: engine.clone(),
            idle_name: "rc6_residency_ms",
            throttle: engine,
            throttle_prefix: "throttle_reason_",
        }
    }

    fn read_reasons(&self) -> Result<Vec<ThrottleReason>, Absence> {
        // Newer drivers list all current reasons in a single line.
        if let Ok(names) = self.throttle.read_text("reasons") {
            return Ok(parse_reasons(&names));
        }
        let status: u8 = self
            .throttle
            .read_number(&format!("{}status", self.throttle_prefix))
            .or_else(|_| self.throttle.read_number("status"))?;
        if status == 0 {
            return Ok(Vec::new());
        }
        let is_set = |name: &str| {
            let file = format!("{}{name}", self.throttle_prefix);
            self.throttle
                .read_number::<u8>(&file)
                .is_ok_and(|set| set != 0)
        };
        let set = REASONS.iter().filter(|(name, _)| is_set(name));
        let reasons = remove_duplicates(set.map(|(_, reason)| *reason));
        // The status can be set because of a reason that gpumon does not know. Such a reason is
        // reported as `OtherLimit`.
        Ok(if reasons.is_empty() {
            vec![OtherLimit]
        } else {
            reasons
        })
    }
}

/// Parses a list of reasons such as `pl1 thermal`. Returns an empty list for `none`.
fn parse_reasons(names: &str) -> Vec<ThrottleReason> {
    let names = names.split(|letter: char| letter.is_whitespace() || letter == ',');
    let names = names.filter(|name| !name.is_empty() && *name != "none");
    remove_duplicates(names.map(|name| {
        let known = REASONS.iter().find(|(own, _)| *own == name);
        known.map_or(OtherLimit, |(_, reason)| *reason)
    }))
}

fn remove_duplicates(reasons: impl Iterator<Item = ThrottleReason>) -> Vec<ThrottleReason> {
    let mut all = Vec::new();
    for reason in reasons {
        if !all.contains(&reason) {
            all.push(reason);
        }
    }
    all
}

/// Returns `true` if the GPU is integrated into the processor.
pub(super) fn is_integrated(card: &Card) -> bool {
    card.bus_id == INTEGRATED_BUS_ID
}

/// Identifies a card using only files that do not wake it. All other fields are absent, with
/// `reason` as the reason.
pub(super) fn identify_card(card: &Card, index: u32, reason: &Absence) -> Gpu {
    let name = card.find_name(Vendor::Intel);
    Gpu {
        vendor: Vendor::Intel,
        vendor_index: Some(index),
        uuid: Some(card.slot_id()),
        name: name.ok_or(Absence::Unknown).into(),
        pci_bus_id: Reading::Now(card.bus_id.clone()),
        ..Gpu::new_unidentified(index, reason)
    }
}

impl IntelDevice {
    /// Opens a GPU and reads its constant data. The system can still suspend an open GPU.
    ///
    /// # Errors
    /// Returns an error if the card is missing or asleep.
    pub(super) fn open(
        card: &Card,
        index: u32,
        proc_root: &Path,
        clients: Arc<Clients>,
    ) -> Result<Self, DeviceError> {
        card.check_is_awake()?;
        let mut device = Self {
            identity: identify_card(card, index, &Absence::NotSupported),
            hwmon: Hwmon::find(card.device.folder(), &card.driver).unwrap_or_default(),
            port: PciePort::find(card.device.folder()),
            engine: EngineFiles::find(card),
            is_integrated: is_integrated(card),
            card: card.clone(),
            proc_root: proc_root.to_owned(),
            clients,
            usage: Usage::new(&NAMES),
            earlier: None,
            last: None,
            is_resting: false,
            last_details: None,
            energy_file: None,
        };
        device.identity.board = device.read_board();
        device.find_energy_file();
        Ok(device)
    }

    fn read_board(&self) -> Board {
        let highest: Result<u32, _> = self.engine.clock.read_number(self.engine.clock_names[1]);
        let link = self.port.read_max_link();
        let celsius =
            |label: &str, limit: &str| Reading::from(self.hwmon.read_celsius(label, limit));
        let absent = Board::new_absent(&Absence::NotSupported);
        // The link data of integrated GPUs is meaningless.
        let has_link = !self.is_integrated;
        let keep = |reading| {
            if has_link {
                reading
            } else {
                Err(Absence::NotSupported)
            }
        };
        Board {
            numa_node: self.card.numa_node().into(),
            pcie_max_generation: keep(link.generation).into(),
            pcie_max_width: keep(link.width).into(),
            max_clocks: MaxClocks {
                graphics_mhz: highest.clone().into(),
                sm_mhz: highest.into(),
                ..absent.max_clocks
            },
            power_limits: PowerLimits {
                default_watts: self
                    .read_first_nonzero(&["power1_rated_max", "power2_rated_max"])
                    .into(),
                ..absent.power_limits
            },
            thresholds: Thresholds {
                shutdown_celsius: celsius("pkg", "emergency"),
                slowdown_celsius: celsius("pkg", "crit"),
                memory_max_celsius: celsius("vram", "crit"),
                gpu_max_celsius: Reading::NOT_SUPPORTED,
            },
            ..absent
        }
    }

    /// Reads `files` in turn and returns the first value that is not 0. Values are in millionths of
    /// their unit. On some boards, the card's file contains 0, while the package's file contains
    /// the value.
    fn read_first_nonzero(&self, files: &[&str]) -> Result<f64, Absence> {
        let mut reason = Absence::NotSupported;
        for file in files {
            match self.hwmon.read_millionths(file) {
                Ok(value) if value > 0.0 => return Ok(value),
                Ok(_) => {}
                Err(absence) => reason = absence,
            }
        }
        Err(reason)
    }

    /// Finds the file with a working energy counter. On some boards, the card's counter is always
    /// 0.
    fn find_energy_file(&mut self) {
        let files = ["energy1_input", "energy2_input"];
        let mut counting = files.into_iter();
        self.energy_file = counting.find(|file| self.read_first_nonzero(&[file]).is_ok());
        self.identity.board.energy_source = self.energy_file.map(|_| EnergySource::Counter);
    }

    fn read_counters(&mut self) -> CounterReadings {
        CounterReadings {
            at: Instant::now(),
            energy_joules: self.read_energy(),
            idle_ms: self.engine.idle.read_number(self.engine.idle_name).ok(),
        }
    }

    /// Reads the energy in joules, always from the same file.
    fn read_energy(&mut self) -> Option<f64> {
        if self.energy_file.is_none() {
            self.find_energy_file();
        }
        let file = self.energy_file?;
        self.hwmon.read_millionths(file).ok()
    }

    /// Fills in the values that require two readings of a counter: the power and the utilization.
    /// The utilization is the share of time in which the GPU was awake.
    fn read_rates(&mut self, sample: &mut GpuSample) {
        let now = self.read_counters();
        let earlier = self.earlier.replace(now);
        sample.power.energy_joules_total = now.energy_joules.ok_or(Absence::NotSupported).into();
        let missing = |is_counted: bool| {
            if is_counted {
                Absence::WarmingUp
            } else {
                Absence::NotSupported
            }
        };
        let elapsed = earlier.map(|earlier| now.at.duration_since(earlier.at).as_secs_f64());
        let elapsed = elapsed.filter(|seconds| *seconds > 0.0);
        let joules = earlier.and_then(|earlier| Some(now.energy_joules? - earlier.energy_joules?));
        let watts = joules
            .zip(elapsed)
            .map(|(joules, seconds)| joules / seconds);
        let watts = watts.filter(|watts| *watts >= 0.0);
        sample.power.draw_watts = watts.ok_or(missing(now.energy_joules.is_some())).into();
        let idle = earlier.and_then(|earlier| now.idle_ms?.checked_sub(earlier.idle_ms?));
        let awake = idle.zip(elapsed).map(|(idle, seconds)| {
            (100.0 - idle as f64 / (seconds * 1e3) * 100.0).clamp(0.0, 100.0)
        });
        sample.utilization.gpu_percent = awake.ok_or(missing(now.idle_ms.is_some())).into();
    }

    fn read_sensors(&self, sample: &mut GpuSample) {
        let celsius = |label: &str| self.hwmon.read_celsius(label, "input");
        // The only sensor of the `i915` driver has no label.
        let unlabeled = || {
            let read = self.hwmon.read_number("temp1_input");
            read.map(|millidegrees| millidegrees as f64 / 1e3)
        };
        sample.temperature.gpu_celsius = celsius("pkg").or_else(|_| unlabeled()).into();
        sample.temperature.memory_celsius = celsius("vram").into();
        sample.power.limit_watts = self
            .read_first_nonzero(&["power1_max", "power2_max", "power1_cap", "power2_cap"])
            .into();
        let clock: Result<u32, _> = self.engine.clock.read_number(self.engine.clock_names[0]);
        sample.clocks.graphics_mhz = clock.clone().into();
        sample.clocks.sm_mhz = clock.into();
        sample.throttle_reasons = self.engine.read_reasons().into();
        if !self.is_integrated {
            let link = self.port.read_link();
            sample.pcie.generation = link.generation.into();
            sample.pcie.width = link.width.into();
        }
    }

    /// Reads the processes and their memory. The used memory is the sum over all processes, so it
    /// is known only if all of them are visible.
    fn read_memory(&mut self, sample: &mut GpuSample) {
        let sees_all = self.read_processes(sample);
        if self.is_integrated {
            sample.set_memory_from_machine(MachineMemory::read(&self.proc_root));
        } else {
            sample.memory.used_bytes = sample.sum_process_memory();
        }
        if !sees_all {
            sample.memory.used_bytes = Reading::Absent(Absence::NoPermission);
        }
    }

    /// Reads the processes. Returns `false` if some processes are not visible to this user.
    fn read_processes(&mut self, sample: &mut GpuSample) -> bool {
        let patience = if self.last.is_none() {
            FIRST_SCAN_PATIENCE
        } else {
            SCAN_PATIENCE
        };
        let Some(scan) = self.clients.get_recent_scan(SCAN_AGE, patience) else {
            sample.processes = Reading::Absent(Absence::NotReadYet);
            return true;
        };
        let own = scan.find_card_clients(&self.card.bus_id);
        self.usage.update(scan.at, &own);
        let processes = self.usage.list_processes(&own, self.is_integrated);
        sample.processes = Reading::Now(processes);
        !scan.is_incomplete && is_first_pid_namespace(&self.proc_root) != Some(false)
    }

    /// Returns the last sample if the card was idle at that time, and if the card must still be
    /// left alone. Reading it now would prevent the system from suspending it.
    fn reusable_sample(&self) -> Option<&GpuSample> {
        let (at, sample) = self.last.as_ref()?;
        let awake = sample.utilization.gpu_percent.value();
        let is_used = awake.is_none_or(|percent| *percent > MAX_IDLE_PERCENT)
            || sample
                .processes
                .value()
                .is_none_or(|processes| !processes.is_empty());
        (!is_used && at.elapsed() < self.card.rest_time_after_reading()?).then_some(sample)
    }
}

impl Device for IntelDevice {
    fn identify(&mut self) -> Gpu {
        self.identity.clone()
    }

    fn read(&mut self, sample: &mut GpuSample, _depth: ReadDepth) -> Result<(), DeviceError> {
        self.card.check_is_awake()?;
        if let Some(rested) = self.reusable_sample() {
            let (at_ms, rested) = (sample.at_ms, rested.clone());
            *sample = GpuSample { at_ms, ..rested };
            self.is_resting = true;
            return Ok(());
        }
        self.is_resting = false;
        sample.clear_readings(&Absence::NotSupported);
        self.read_rates(sample);
        self.read_sensors(sample);
        self.read_memory(sample);
        self.last = Some((Instant::now(), sample.clone()));
        Ok(())
    }

    fn read_details(&mut self, details: &mut GpuDetails) -> Result<(), DeviceError> {
        self.card.check_is_awake()?;
        details.clear_readings(&Absence::NotSupported);
        if let Some(last) = self.last_details.as_ref().filter(|_| self.is_resting) {
            *details = last.clone();
            return Ok(());
        }
        let turns = ["fan1_input", "fan2_input", "fan3_input"]
            .map(|file| self.hwmon.read_number(file).ok());
        // Unused fan connectors always report 0.
        let turning = turns.into_iter().flatten().filter(|rpm| *rpm > 0);
        let fans: Vec<_> = turning
            .filter_map(|rpm| {
                let rpm = Reading::Now(u32::try_from(rpm).ok()?);
                Some(Fan {
                    speed_percent: Reading::NOT_SUPPORTED,
                    rpm,
                })
            })
            .collect();
        if !fans.is_empty() {
            details.fans = Reading::Now(fans);
        }
        self.last_details = Some(details.clone());
        Ok(())
    }
}
