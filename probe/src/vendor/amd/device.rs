//! One GPU.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    board,
    kfd::{self, Node},
    metrics::{self, Field, Metrics, MetricsError},
    partitions::Partitions,
    processes,
    throttle::{self, Shares, counter_growth},
};
use crate::{
    model::{
        Absence, Absent, Activity, Bar1, Ecc, EccCounts, Fan, Gpu, GpuDetails, GpuSample,
        MemoryKind, NvLink, NvLinkRemote, PowerLimits, Reading, ThrottleReason, Trace, Vendor,
    },
    vendor::{
        Device, DeviceError, ReadDepth,
        drm::{Attributes, Card, Clients, Hwmon, PowerState, Usage, generation_of, read_link},
    },
};

/// The age of a scan of processes that is new enough.
const SCAN_AGE: Duration = Duration::from_millis(400);

/// The longest wait for a scan of processes. The first scan of a machine takes longer.
const SCAN_PATIENCE: Duration = Duration::from_millis(100);
const FIRST_SCAN_PATIENCE: Duration = Duration::from_millis(500);

/// The firmware of Navi reports wrong activity and clocks for this long after a card wakes up.
const LATCHED_FOR: Duration = Duration::from_secs(15);

/// Reading the counters of errors makes the driver collect them from all blocks.
const ECC_EVERY: Duration = Duration::from_mins(1);

/// Counting the occupied compute units walks all queues of the hardware.
const COMPUTE_EVERY: Duration = Duration::from_secs(1);

/// A longer pause between two samples leaves the power in between unknown.
const LONGEST_STEP: Duration = Duration::from_mins(2);

/// Devices whose accumulator of energy is right: MI100, MI200 and MI300 series.
const WITH_ENERGY: [u16; 16] = [
    0x738c, 0x738e, 0x7408, 0x740c, 0x740f, 0x7410, 0x74a0, 0x74a1, 0x74a2, 0x74a5, 0x74a8, 0x74a9,
    0x74b5, 0x74b6, 0x75a0, 0x75a3,
];

/// The unit of their accumulator, in joules: 2^-16.
const ENERGY_UNIT: f64 = 1.0 / 65536.0;

/// The device ID of MI300A.
const MI300A: u16 = 0x74a0;

/// APUs whose firmware always reports full use: Raven, Picasso and Cyan Skillfish.
const WITHOUT_USE: [u16; 3] = [0x15d8, 0x15dd, 0x13fe];

/// Fans turn at fewer turns than this only as noise of the sensor.
const FAN_NOISE_RPM: u64 = 100;

/// One GPU: the files of its card, and what was read before.
pub(super) struct AmdDevice {
    card: Card,
    identity: Gpu,
    sys_root: PathBuf,
    hwmon: Option<Hwmon>,
    power: PowerFiles,
    clients: Arc<Clients>,
    sees_host_pids: bool,
    usage: Usage,
    nodes: Vec<Node>,
    partitions: Partitions,
    /// The generation of KFD's topology that the nodes are from.
    generation: Option<u64>,
    /// The firmware's readings are wrong until then.
    latched_until: Option<Instant>,
    /// Returns `true` if the GPU is a part of the processor.
    is_apu: bool,
    earlier: Option<Earlier>,
    throttled: ThrottledSeconds,
    /// The energy since the GPU was opened, for GPUs without an accumulator.
    energy_joules: f64,
    ecc: Option<(Instant, Ecc)>,
    compute: Option<(Instant, Vec<kfd::ComputeProcess>)>,
    /// Whether the last reading left the card alone.
    is_resting: bool,
    /// The last details, for a card that is left alone.
    last_details: Option<GpuDetails>,
    /// The last sample and its time. It is shown again while the card is left alone to fall asleep.
    last: Option<(Instant, GpuSample)>,
}

/// The last tables and readings, for rates.
struct Earlier {
    at: Instant,
    metrics: Option<Metrics>,
    watts: Option<f64>,
}

/// The time in which clocks were reduced, in seconds.
#[derive(Debug, Default, Clone, Copy)]
struct ThrottledSeconds {
    is_counted: bool,
    power: f64,
    thermal: f64,
}

/// The names of the files with a card's power, which differ between products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PowerFiles {
    has_average: bool,
    has_instant: bool,
}

impl PowerFiles {
    pub(super) fn find(hwmon: &Hwmon) -> Self {
        let has = |file| hwmon.read_micro(file) != Err(Absence::NotSupported);
        Self {
            has_average: has("power1_average"),
            has_instant: has("power1_input"),
        }
    }

    pub(super) fn read_limits(hwmon: &Hwmon) -> PowerLimits {
        // Some products give 0 for no limit.
        let above_zero = |watts: f64| {
            if watts > 0.0 {
                Ok(watts)
            } else {
                Err(Absence::NotSupported)
            }
        };
        PowerLimits {
            default_watts: hwmon
                .read_micro("power1_cap_default")
                .and_then(above_zero)
                .into(),
            min_watts: hwmon.read_micro("power1_cap_min").into(),
            max_watts: hwmon
                .read_micro("power1_cap_max")
                .and_then(above_zero)
                .into(),
        }
    }
}

impl AmdDevice {
    /// Opens a GPU, which reads what never changes. Nothing keeps the card awake.
    pub(super) fn open(
        card: &Card,
        index: u32,
        sys_root: &std::path::Path,
        clients: Arc<Clients>,
        sees_host_pids: bool,
        was_asleep: bool,
    ) -> Self {
        let hwmon = Hwmon::find(card.device.folder(), &card.driver);
        let power = hwmon.as_ref().map_or(
            PowerFiles {
                has_average: false,
                has_instant: false,
            },
            PowerFiles::find,
        );
        let mut device = Self {
            identity: Gpu {
                vendor: Vendor::Amd,
                vendor_index: Some(index),
                uuid: Some(board::uuid(card)),
                name: board::name(card),
                pci_bus_id: Reading::Now(card.bus_id.clone()),
                ..Gpu::unidentified(index, &Absence::NotSupported)
            },
            card: card.clone(),
            sys_root: sys_root.to_owned(),
            hwmon,
            power,
            clients,
            sees_host_pids,
            usage: Usage::new(&processes::NAMES),
            nodes: Vec::new(),
            partitions: Partitions::default(),
            generation: None,
            latched_until: Instant::now()
                .checked_add(LATCHED_FOR)
                .filter(|_| was_asleep),
            is_apu: false,
            earlier: None,
            throttled: ThrottledSeconds::default(),
            energy_joules: 0.0,
            ecc: None,
            compute: None,
            is_resting: false,
            last_details: None,
            last: None,
        };
        device.is_apu = device.is_part_of_processor();
        device.find_nodes();
        device.identity.board =
            board::read_board(&device.card, device.hwmon.as_ref(), device.own_node());
        device
    }

    /// Returns `true` if the GPU is a part of the processor: its table has a format of its own, or
    /// it has the sensor for the voltage of the processor's other parts.
    fn is_part_of_processor(&self) -> bool {
        let has_sensor = self
            .hwmon
            .as_ref()
            .is_some_and(|hwmon| hwmon.has_sensor("in", "vddnb"));
        let is_mi300a = self.card.pci_id.is_some_and(|(_, device)| device == MI300A);
        let metrics = self.read_metrics();
        let format = metrics.map(|metrics| metrics.version.format);
        has_sensor || is_mi300a || matches!(format, Ok(2 | 3))
    }

    /// Reads the topology, if it has changed.
    fn find_nodes(&mut self) {
        let generation = kfd::generation(&self.sys_root);
        if generation.is_some() && generation == self.generation {
            return;
        }
        self.generation = generation;
        let nodes = kfd::find_nodes(&self.sys_root);
        self.partitions = Partitions::find(&nodes, &self.card.bus_id);
        let is_own = |node: &Node| node.bus_id().as_deref() == Some(self.card.bus_id.as_str());
        self.nodes = nodes.into_iter().filter(is_own).collect();
        self.identity.mig_devices = self
            .partitions
            .identities(&self.uuid(), &board::read_profile(&self.card.device));
    }

    fn own_node(&self) -> Option<&Node> {
        self.nodes.first()
    }

    fn uuid(&self) -> String {
        self.identity.uuid.clone().unwrap_or_default()
    }

    fn read_sensor<T>(
        &self,
        read: impl FnOnce(&Hwmon) -> Result<T, Absence>,
    ) -> Result<T, Absence> {
        self.hwmon.as_ref().map_or(Err(Absence::NotSupported), read)
    }

    fn files(&self) -> &Attributes {
        &self.card.device
    }

    /// Checks that the card is there and awake.
    fn check(&self) -> Result<(), DeviceError> {
        if !self.card.exists() {
            return Err(DeviceError::Lost);
        }
        match self.card.power_state() {
            PowerState::Active => Ok(()),
            PowerState::Asleep => Err(DeviceError::Asleep),
        }
    }

    /// Returns the last sample if the card was idle and is to be left alone.
    fn rested_sample(&self) -> Option<&(Instant, GpuSample)> {
        let rested @ (at, sample) = self.last.as_ref()?;
        let is_used = sample
            .utilization
            .gpu_percent
            .value()
            .is_some_and(|percent| *percent > 0.0)
            || has_work(sample);
        (!is_used && at.elapsed() < self.card.rest_after_reading()?).then_some(rested)
    }

    /// Fills in the sample of a card that is left alone, whose processes alone are read; `false` if
    /// one of them works.
    fn fill_rested(&mut self, sample: &mut GpuSample) -> bool {
        let Some((_, rested)) = self.rested_sample() else {
            return false;
        };
        let mut rested = rested.clone();
        date_sensors(&mut rested);
        (rested.at_ms, rested.uuid) = (sample.at_ms, sample.uuid.take());
        *sample = rested;
        self.read_memory(sample);
        self.read_processes(sample);
        !has_work(sample)
    }

    /// Reads the table of the firmware.
    fn read_metrics(&self) -> Result<Metrics, Absence> {
        let bytes = self.files().read_bytes("gpu_metrics", metrics::LARGEST)?;
        Metrics::decode(&bytes).map_err(|error| match error {
            MetricsError::Empty => Absence::NotSupported,
            _ => Absence::Unknown,
        })
    }

    fn read_memory(&self, sample: &mut GpuSample) {
        let bytes = |name| self.files().read_number::<u64>(name);
        let (total, used) = (bytes("mem_info_vram_total"), bytes("mem_info_vram_used"));
        let (gtt_total, gtt_used) = (bytes("mem_info_gtt_total"), bytes("mem_info_gtt_used"));
        // An APU has a part of the machine's memory, and maps more of it as needed.
        let is_unified = self.is_apu;
        let both = |one: &Result<u64, Absence>, other: &Result<u64, Absence>| match (one, other) {
            (Ok(one), Ok(other)) if is_unified => Ok(one.saturating_add(*other)),
            _ => one.clone(),
        };
        let (all, in_use) = (both(&total, &gtt_total), both(&used, &gtt_used));
        sample.memory.free_bytes = match (&all, &in_use) {
            (Ok(total), Ok(used)) => Reading::Now(total.saturating_sub(*used)),
            (Err(reason), _) | (_, Err(reason)) => Reading::Absent(reason.clone()),
        };
        sample.memory.total_bytes = all.into();
        sample.memory.used_bytes = in_use.into();
        sample.memory.reserved_bytes = Reading::NOT_SUPPORTED;
        sample.memory.gtt_total_bytes = gtt_total.into();
        sample.memory.gtt_used_bytes = gtt_used.into();
        sample.memory_kind = if is_unified {
            MemoryKind::Unified
        } else {
            MemoryKind::Device
        };
    }

    fn read_sensors(
        &self,
        metrics: Option<&Metrics>,
        busy: Result<u32, Absence>,
        sample: &mut GpuSample,
    ) {
        let get = |field| {
            metrics
                .and_then(|metrics| metrics.get(field))
                .ok_or(Absence::NotSupported)
        };
        let percent = |file: &str| self.files().read_number::<u32>(file).map(f64::from);
        let utilization = &mut sample.utilization;
        utilization.gpu_percent = match self.card.pci_id {
            Some((_, device)) if WITHOUT_USE.contains(&device) => Reading::NOT_SUPPORTED,
            _ => busy
                .map(f64::from)
                .or_else(|_| get(Field::GfxActivity))
                .into(),
        };
        utilization.memory_percent = percent("mem_busy_percent")
            .or_else(|_| get(Field::MemoryActivity))
            .into();
        let media = percent("vcn_busy_percent").or_else(|_| get(Field::MediaActivity));
        let media = media.or_else(|_| find_highest(metrics, Field::VcnActivity));
        utilization.media_percent = media.into();
        for absent in [
            &mut utilization.encoder_percent,
            &mut utilization.decoder_percent,
            &mut utilization.ofa_percent,
        ] {
            *absent = Reading::NOT_SUPPORTED;
        }
        utilization.jpeg_percent = find_highest(metrics, Field::JpegActivity).into();

        let celsius = |label| self.read_sensor(|hwmon| hwmon.read_celsius(label, "input"));
        let above_zero = |value: f64| {
            if value > 0.0 {
                Ok(value)
            } else {
                Err(Absence::NotSupported)
            }
        };
        let junction = celsius("junction").or_else(|_| get(Field::HotspotTemperature));
        let edge = celsius("edge").or_else(|_| get(Field::EdgeTemperature));
        let edge = edge.or_else(|_| get(Field::GfxTemperature));
        sample.temperature.gpu_celsius = edge.or_else(|_| junction.clone()).into();
        let limit = self
            .identity
            .board
            .thresholds
            .slowdown_celsius
            .value()
            .copied();
        sample.temperature.margin_celsius = match (&junction, limit) {
            (Ok(junction), Some(limit)) => Reading::Now(limit - junction),
            _ => Reading::NOT_SUPPORTED,
        };
        sample.temperature.junction_celsius = junction.into();
        // Boards without the sensor give 0.
        let memory = celsius("mem")
            .or_else(|_| get(Field::MemoryTemperature))
            .and_then(above_zero);
        sample.temperature.memory_celsius = memory
            .or_else(|_| find_highest(metrics, Field::HbmTemperature))
            .into();

        self.read_clocks(metrics, sample);
        sample.fan_percent = self.read_fan().speed_percent;
        let link = read_link(self.card.device.folder());
        // The table has the link of the slot, also on boards with a switch of their own.
        let width = get(Field::PcieWidth).and_then(round_to_whole);
        let width = width.ok().filter(|lanes| *lanes > 0).map_or(link.width, Ok);
        let generation = get(Field::PcieSpeed)
            .and_then(|speed| generation_of(speed).ok_or(Absence::Unknown))
            .or(link.generation);
        // Some boards report the link to their own switch, which is faster.
        let limit = self.identity.board.pcie_max_generation.value().copied();
        let generation = generation.map(|own| limit.map_or(own, |limit| own.min(limit)));
        sample.pcie.generation = generation.into();
        sample.pcie.width = width.into();
        sample.pcie.tx_bytes_per_second = Reading::NOT_SUPPORTED;
        sample.pcie.rx_bytes_per_second = Reading::NOT_SUPPORTED;
        sample.performance_state = Reading::NOT_SUPPORTED;
    }

    fn read_clocks(&self, metrics: Option<&Metrics>, sample: &mut GpuSample) {
        let table = |now: Field, average: Field| {
            let metrics = metrics.ok_or(Absence::NotSupported)?;
            let highest = find_highest(Some(metrics), now);
            highest
                .or_else(|_| find_highest(Some(metrics), average))
                .and_then(round_to_whole)
        };
        let sensor = |label| self.read_sensor(|hwmon| hwmon.read_megahertz(label));
        let graphics = sensor("sclk").or_else(|_| table(Field::GfxClock, Field::AverageGfxClock));
        let memory =
            sensor("mclk").or_else(|_| table(Field::MemoryClock, Field::AverageMemoryClock));
        let clocks = &mut sample.clocks;
        clocks.sm_mhz = graphics.clone().into();
        clocks.graphics_mhz = graphics.into();
        clocks.memory_mhz = memory.into();
        clocks.video_mhz = table(Field::VideoClock, Field::AverageVideoClock).into();
        clocks.soc_mhz = table(Field::SocClock, Field::AverageSocClock).into();
        clocks.fabric_mhz = table(Field::FabricClock, Field::AverageFabricClock).into();
    }

    /// Reads power and energy. The second die of an MI250X has neither: the first has both dies'.
    fn read_power(&mut self, metrics: Option<&Metrics>, at: Instant, sample: &mut GpuSample) {
        let limit = self.read_sensor(|hwmon| hwmon.read_micro("power1_cap"));
        let is_second_die = limit == Ok(0.0) && self.has_energy();
        let read = |has: bool, file| {
            let watts = self.read_sensor(|hwmon| hwmon.read_micro(file));
            if has && !is_second_die {
                watts
            } else {
                Err(Absence::NotSupported)
            }
        };
        let average = read(self.power.has_average, "power1_average");
        let instant = read(self.power.has_instant, "power1_input");
        let table = metrics.and_then(|metrics| metrics.get(Field::SocketPower));
        let table = table
            .filter(|_| !is_second_die)
            .ok_or(Absence::NotSupported);
        let draw = average.clone().or_else(|_| instant.clone()).or(table);
        self.integrate(draw.as_ref().ok().copied(), at);
        let power = &mut sample.power;
        power.energy_joules_total = if is_second_die {
            Reading::NOT_SUPPORTED
        } else if self.has_energy() {
            let counter = metrics.and_then(|metrics| metrics.get(Field::Energy));
            counter
                .map(|units| units * ENERGY_UNIT)
                .ok_or(Absence::NotSupported)
                .into()
        } else if draw.is_ok() {
            Reading::Now(self.energy_joules)
        } else {
            Reading::NOT_SUPPORTED
        };
        power.draw_watts = draw.into();
        power.average_watts = average.into();
        power.instant_watts = instant.into();
        let above_zero = |watts: f64| {
            if watts > 0.0 {
                Ok(watts)
            } else {
                Err(Absence::NotSupported)
            }
        };
        power.limit_watts = limit.and_then(above_zero).into();
    }

    /// Returns `true` if the firmware has a counter of energy that is right.
    fn has_energy(&self) -> bool {
        self.card
            .pci_id
            .is_some_and(|(_, device)| WITH_ENERGY.contains(&device))
    }

    /// Adds the energy since the last sample, from the mean of the powers at both ends.
    fn integrate(&mut self, watts: Option<f64>, now: Instant) {
        if let Some(Earlier {
            at,
            watts: Some(before),
            ..
        }) = &self.earlier
            && let Some(watts) = watts
        {
            let step = now.duration_since(*at);
            if step <= LONGEST_STEP {
                self.energy_joules += (before + watts) / 2.0 * step.as_secs_f64();
            }
        }
    }

    /// Fills in the readings that need two tables: activity, causes of reduced clocks and XGMI
    /// rates.
    fn read_rates(&mut self, metrics: Option<&Metrics>, at: Instant, sample: &mut GpuSample) {
        let Some(now) = metrics else {
            sample.activity = Reading::NOT_SUPPORTED;
            sample.throttle_reasons = Reading::NOT_SUPPORTED;
            sample.nvlink = Absent::absent(&Absence::NotSupported);
            return;
        };
        let earlier = self.earlier.as_ref();
        let before = earlier.and_then(|earlier| Some((earlier.at, earlier.metrics.as_ref()?)));
        let shares = before.and_then(|(_, before)| Shares::compare(before, now));
        let elapsed = before.map_or(0.0, |(earlier, _)| at.duration_since(earlier).as_secs_f64());
        sample.activity = match before {
            _ if now.get_raw(Field::GfxActivitySum).is_none()
                || now.get_raw(Field::Samples).is_none() =>
            {
                Reading::NOT_SUPPORTED
            }
            None => Reading::Absent(Absence::WarmingUp),
            Some((_, before)) => Reading::Now(Activity {
                graphics_percent: mean_activity(before, now).ok_or(Absence::WarmingUp).into(),
                ..Activity::absent(&Absence::NotSupported)
            }),
        };
        let rate = |field| xgmi_rate(before.map(|(_, before)| before), now, field, elapsed);
        sample.nvlink.rx_bytes_per_second = rate(Field::XgmiRead).into();
        sample.nvlink.tx_bytes_per_second = rate(Field::XgmiWritten).into();
        if let Some(shares) = &shares {
            self.throttled.is_counted = true;
            self.throttled.power += shares.get_share(ThrottleReason::PowerLimit) * elapsed;
            let thermal = [
                ThrottleReason::ThermalLimit,
                ThrottleReason::MemoryThermalLimit,
                ThrottleReason::RegulatorThermalLimit,
            ];
            let share = thermal
                .map(|reason| shares.get_share(reason))
                .into_iter()
                .fold(0.0, f64::max);
            self.throttled.thermal += share * elapsed;
        }
        let margin = sample.temperature.margin_celsius.value().copied();
        let reasons = throttle::find_reasons(now, shares.as_ref(), margin);
        let reason_of_absence = if now.get_raw(Field::Samples).is_some() && before.is_none() {
            Absence::WarmingUp
        } else {
            Absence::NotSupported
        };
        sample.throttle_reasons = reasons.ok_or(reason_of_absence).into();
    }

    fn read_fan(&self) -> Fan {
        let number = |file: &str| self.read_sensor(|hwmon| hwmon.read_number(file));
        let rpm = number("fan1_input").map(|rpm| if rpm < FAN_NOISE_RPM { 0 } else { rpm });
        #[allow(clippy::cast_precision_loss)]
        let share = |part: u64, all: u64| (part as f64 / all.max(1) as f64 * 100.0).min(100.0);
        let fastest = number("fan1_max").ok().filter(|rpm| *rpm > 0);
        let by_turns = rpm.clone().and_then(|rpm| {
            let fastest = fastest.ok_or(Absence::NotSupported)?;
            Ok(share(rpm, fastest))
        });
        let by_width = number("pwm1").map(|width| share(width, 255));
        Fan {
            speed_percent: by_turns.or(by_width).into(),
            rpm: rpm
                .and_then(|rpm| u32::try_from(rpm).map_err(|_| Absence::Unknown))
                .into(),
        }
    }

    fn read_processes(&mut self, sample: &mut GpuSample) {
        let patience = if self.last.is_none() {
            FIRST_SCAN_PATIENCE
        } else {
            SCAN_PATIENCE
        };
        let Some(scan) = self.clients.get(SCAN_AGE, patience) else {
            sample.processes = Reading::Absent(Absence::NotReadYet);
            return;
        };
        let own = scan.of_card(&self.card.bus_id);
        self.usage.update(scan.at, &own);
        let is_due = self
            .compute
            .as_ref()
            .is_none_or(|(at, _)| at.elapsed() >= COMPUTE_EVERY);
        if self.sees_host_pids && is_due {
            let read = kfd::read_processes(&self.sys_root, &self.nodes);
            self.compute = Some((Instant::now(), read));
        }
        let compute = self
            .compute
            .as_ref()
            .map_or(&[][..], |(_, compute)| compute);
        let units = self.own_node().and_then(Node::compute_units);
        let listed = processes::list(
            &self.usage,
            &own,
            compute,
            &self.partitions,
            units,
            self.is_apu,
        );
        if scan.is_incomplete {
            let held = listed
                .iter()
                .filter_map(|process| process.memory_bytes.value());
            let held = held.fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
            let used = sample.memory.used_bytes.value();
            sample.unlisted_memory_bytes = used.map(|used| used.saturating_sub(held));
        }
        sample.processes = Reading::Now(listed);
    }

    fn read_ecc(&mut self) -> Ecc {
        if let Some((at, ecc)) = &self.ecc
            && at.elapsed() < ECC_EVERY
        {
            return ecc.clone();
        }
        let counts = ["umc", "gfx", "sdma", "mmhub", "xgmi_wafl"].map(|block| {
            self.files()
                .read_text(&format!("ras/{block}_err_count"))
                .ok()
                .and_then(|text| parse_errors(&text))
        });
        let total =
            counts.iter().flatten().copied().reduce(|one, other| {
                (one.0.saturating_add(other.0), one.1.saturating_add(other.1))
            });
        let mut ecc = Ecc::absent(&Absence::NotSupported);
        if let Some((corrected, uncorrected)) = total {
            ecc.volatile = EccCounts {
                corrected_total: Reading::Now(corrected),
                uncorrected_total: Reading::Now(uncorrected),
            };
        }
        self.ecc = Some((Instant::now(), ecc.clone()));
        ecc
    }

    /// The firmware's readings after a card wakes up are not those of this moment.
    fn drop_latched(&self, sample: &mut GpuSample) {
        if self
            .latched_until
            .is_some_and(|until| Instant::now() < until)
        {
            sample.utilization.gpu_percent = Reading::Absent(Absence::WarmingUp);
            sample.clocks.graphics_mhz = Reading::Absent(Absence::WarmingUp);
            sample.clocks.sm_mhz = Reading::Absent(Absence::WarmingUp);
        }
    }
}

impl Device for AmdDevice {
    fn identity(&mut self) -> Gpu {
        self.identity.clone()
    }

    fn read(&mut self, sample: &mut GpuSample, _depth: ReadDepth) -> Result<(), DeviceError> {
        self.check()?;
        self.is_resting = self.fill_rested(sample);
        if self.is_resting {
            return Ok(());
        }
        self.find_nodes();
        let metrics = self.read_metrics();
        let at = Instant::now();
        let busy = self.files().read_number::<u32>("gpu_busy_percent");
        if is_refused(&metrics, &busy) {
            // The card may have fallen asleep since it was looked at.
            self.check()?;
            return Err(in_reset());
        }
        let metrics = metrics.ok();
        self.read_sensors(metrics.as_ref(), busy, sample);
        self.read_power(metrics.as_ref(), at, sample);
        self.read_rates(metrics.as_ref(), at, sample);
        let watts = sample.power.draw_watts.value().copied();
        let samples = self.partitions.read_samples(&self.uuid(), metrics.as_ref());
        sample.mig_devices = match samples.len() {
            0 if board::read_profile(self.files()).value().is_none() => Reading::NOT_SUPPORTED,
            _ => Reading::Now(samples),
        };
        self.earlier = Some(Earlier { at, metrics, watts });
        self.read_memory(sample);
        self.read_processes(sample);
        self.drop_latched(sample);
        self.last = Some((at, sample.clone()));
        Ok(())
    }

    fn details(&mut self, details: &mut GpuDetails) -> Result<(), DeviceError> {
        self.check()?;
        let unsupported = GpuDetails::absent(
            details.index,
            details.uuid.take(),
            details.at_ms,
            &Absence::NotSupported,
        );
        *details = unsupported;
        if let Some(last) = self.last_details.as_ref().filter(|_| self.is_resting) {
            *details = last.clone();
            return Ok(());
        }
        details.requested_power_limit_watts = self
            .read_sensor(|hwmon| hwmon.read_micro("power1_cap"))
            .into();
        if self.throttled.is_counted {
            details.throttled.power_seconds_total = Reading::Now(self.throttled.power);
            details.throttled.thermal_seconds_total = Reading::Now(self.throttled.thermal);
        }
        details.ecc = self.read_ecc();
        let visible = (
            self.files().read_number("mem_info_vis_vram_total"),
            self.files().read_number("mem_info_vis_vram_used"),
        );
        if let (Ok(total_bytes), Ok(used_bytes)) = visible {
            details.bar1 = Reading::Now(Bar1 {
                total_bytes,
                used_bytes,
            });
        }
        let metrics = self
            .earlier
            .as_ref()
            .and_then(|earlier| earlier.metrics.as_ref());
        let replays = metrics.and_then(|metrics| metrics.get_raw(Field::PcieReplays));
        let replays = replays.map_or_else(|| self.files().read_number("pcie_replay_count"), Ok);
        details.pcie_replays_total = replays.into();
        details.nvlinks = metrics
            .and_then(read_links)
            .ok_or(Absence::NotSupported)
            .into();
        let fan = self.read_fan();
        details.fans = if fan.rpm.value().is_some() || fan.speed_percent.value().is_some() {
            Reading::Now(vec![fan])
        } else {
            Reading::NOT_SUPPORTED
        };
        self.last_details = Some(details.clone());
        Ok(())
    }

    fn traces(&mut self) -> Vec<Trace> {
        Vec::new()
    }
}

/// Returns `true` if the driver refuses to read the sensors, as it does while it resets the card.
fn is_refused(metrics: &Result<Metrics, Absence>, busy: &Result<u32, Absence>) -> bool {
    let errors = [metrics.as_ref().err(), busy.as_ref().err()];
    errors.iter().all(Option::is_some) && errors.contains(&Some(&Absence::NoAnswer))
}

/// Returns `true` if a process works on the GPU.
fn has_work(sample: &GpuSample) -> bool {
    let processes = sample.processes.value().into_iter().flatten();
    let mut shares = processes.filter_map(|process| process.sm_percent.value());
    shares.any(|share| *share > 0.0)
}

/// Gives the readings of sensors their own time.
fn date_sensors(sample: &mut GpuSample) {
    fn set_time<T: Clone>(reading: &mut Reading<T>, at_ms: u64) {
        *reading = reading.clone().dated(at_ms);
    }
    let at_ms = sample.at_ms;
    for reading in [
        &mut sample.utilization.gpu_percent,
        &mut sample.utilization.memory_percent,
        &mut sample.utilization.media_percent,
        &mut sample.power.draw_watts,
        &mut sample.power.instant_watts,
        &mut sample.power.average_watts,
        &mut sample.power.energy_joules_total,
        &mut sample.temperature.gpu_celsius,
        &mut sample.temperature.memory_celsius,
        &mut sample.temperature.junction_celsius,
        &mut sample.temperature.margin_celsius,
        &mut sample.fan_percent,
    ] {
        set_time(reading, at_ms);
    }
    for clock in [
        &mut sample.clocks.graphics_mhz,
        &mut sample.clocks.sm_mhz,
        &mut sample.clocks.memory_mhz,
        &mut sample.clocks.video_mhz,
        &mut sample.clocks.soc_mhz,
        &mut sample.clocks.fabric_mhz,
    ] {
        set_time(clock, at_ms);
    }
    set_time(&mut sample.throttle_reasons, at_ms);
}

fn in_reset() -> DeviceError {
    DeviceError::Failed {
        reason: Absence::NoAnswer,
        meaning: "the driver refuses to read the GPU, as it does during a reset".to_owned(),
        advice: "wait for a minute, then see `dmesg | grep amdgpu`".to_owned(),
    }
}

/// Returns the highest of the elements of a field, of the package or of its partitions.
fn find_highest(metrics: Option<&Metrics>, field: Field) -> Result<f64, Absence> {
    let metrics = metrics.ok_or(Absence::NotSupported)?;
    let partitions = 0..metrics.partition_blocks();
    let of_partitions = partitions.flat_map(|number| metrics.of_partition(number, field));
    let all = metrics.all(field).into_iter().chain(of_partitions);
    all.flatten().reduce(f64::max).ok_or(Absence::NotSupported)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn round_to_whole(number: f64) -> Result<u32, Absence> {
    (0.0..=f64::from(u32::MAX))
        .contains(&number)
        .then_some(number.round() as u32)
        .ok_or(Absence::Unknown)
}

/// Returns the mean activity between two tables, in percent.
fn mean_activity(before: &Metrics, now: &Metrics) -> Option<f64> {
    let growth = |field| counter_growth(before.get_raw(field)?, now.get_raw(field)?);
    let samples = growth(Field::Samples).filter(|samples| *samples > 0.0)?;
    // The sum grows by at most 1 with each sample.
    Some((growth(Field::GfxActivitySum)? / samples * 100.0).clamp(0.0, 100.0))
}

/// Returns the rate over all links, in bytes per second.
fn xgmi_rate(
    before: Option<&Metrics>,
    now: &Metrics,
    field: Field,
    elapsed: f64,
) -> Result<f64, Absence> {
    let counted = now.all(field);
    if counted.iter().all(Option::is_none) {
        return Err(Absence::NotSupported);
    }
    let before = before.ok_or(Absence::WarmingUp)?.all(field);
    let pairs = before.into_iter().zip(counted);
    let growth: f64 = pairs
        .filter_map(|(before, now)| Some((now? - before?).max(0.0)))
        .sum();
    if elapsed > 0.0 {
        Ok(growth / elapsed)
    } else {
        Err(Absence::WarmingUp)
    }
}

/// Returns the XGMI links, with their counters.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn read_links(metrics: &Metrics) -> Option<Vec<NvLink>> {
    let (read, written) = (
        metrics.all(Field::XgmiRead),
        metrics.all(Field::XgmiWritten),
    );
    let states = metrics.all(Field::XgmiLinkStatus);
    let speed = metrics
        .get(Field::XgmiWidth)
        .zip(metrics.get(Field::XgmiSpeed));
    let speed = speed.map(|(lanes, gigabits)| lanes * gigabits * 1e9 / 8.0);
    let link = |(number, (read, written)): (u32, (&Option<f64>, &Option<f64>))| {
        let (read, written) = (read.as_ref()?, written.as_ref()?);
        let state = states.get(number as usize).copied().flatten();
        let absent = || Reading::NOT_SUPPORTED;
        Some(NvLink {
            link: number,
            active: state
                .map(|state| state > 0.0)
                .ok_or(Absence::Unknown)
                .into(),
            version: Reading::NOT_SUPPORTED,
            bytes_per_second: speed.ok_or(Absence::NotSupported).into(),
            remote: Reading::Now(NvLinkRemote::Gpu),
            remote_pci_bus_id: Reading::NOT_SUPPORTED,
            tx_bytes_total: Reading::Now(*written as u64),
            rx_bytes_total: Reading::Now(*read as u64),
            errors_total: absent(),
            replays_total: absent(),
            recoveries_total: absent(),
            crc_errors_total: absent(),
        })
    };
    let links: Vec<_> = (0..)
        .zip(read.iter().zip(&written))
        .filter_map(link)
        .collect();
    (!links.is_empty()).then_some(links)
}

/// Parses the lines `ue: 0` and `ce: 3`: errors that were corrected, and others.
fn parse_errors(text: &str) -> Option<(u64, u64)> {
    let count = |key: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| line.trim().strip_prefix(key)?.trim().parse::<u64>().ok())
    };
    Some((count("ce:")?, count("ue:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_sensors_mean_reset() {
        let (none, reset) = (Err(Absence::NotSupported), Err(Absence::NoAnswer));
        let metrics = || Err(Absence::NoAnswer);
        assert!(is_refused(&metrics(), &reset));
        assert!(is_refused(&metrics(), &none), "it has no such file");
        assert!(is_refused(&Err(Absence::NotSupported), &reset));
        assert!(!is_refused(&metrics(), &Ok(7)));
        assert!(!is_refused(&Err(Absence::Unknown), &none));
    }
}
