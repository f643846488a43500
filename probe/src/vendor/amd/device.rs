//! Reading of a single AMD GPU's sensors, memory, and processes.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use super::{
    board,
    counters::{self, EnergyMeter, TableRates, TimedTable, find_highest_value, read_links},
    errors::{BrokenTables, FatalErrors, RasCounters},
    kfd::{self, KfdNode},
    metrics::{Field, Metrics, MetricsError},
    partitions::Partitions,
    processes::{self, ComputeProcesses},
};
use crate::{
    model::{Absence, Bar1, Fan, Gpu, GpuDetails, GpuSample, MemoryKind, Reading},
    vendor::{
        Device, DeviceError, DriverError, MachineMemory, ReadDepth,
        drm::{Attributes, Card, Clients, Hwmon, PciePort, Usage, generation_from_speed},
        lock,
    },
};

/// The maximum age of a process scan while the GPU is being watched. `SCAN_AGE_UNWATCHED` applies
/// otherwise.
const SCAN_AGE: Duration = Duration::from_millis(400);
const SCAN_AGE_UNWATCHED: Duration = Duration::from_millis(4900);

/// The maximum wait for a process scan. The first scan takes longer; for it, `FIRST_SCAN_PATIENCE`
/// applies.
const SCAN_PATIENCE: Duration = Duration::from_millis(100);
const FIRST_SCAN_PATIENCE: Duration = Duration::from_millis(500);

/// How long Navi's firmware reports outdated activity and clocks after the card has woken up.
const LATCH_TIME: Duration = Duration::from_secs(15);

/// The sysfs file with the utilization of the video engines.
const MEDIA_USE_FILE: &str = "vcn_busy_percent";

/// The PCI device ID of AMD's MI300A, which is an APU.
const MI300A: u16 = 0x74a0;

/// The PCI device IDs of APUs whose firmware always reports full utilization: Raven, Picasso and
/// Cyan Skillfish.
const DEVICES_WITHOUT_UTILIZATION: [u16; 3] = [0x15d8, 0x15dd, 0x13fe];

/// The fan speed below which a reading is sensor noise.
const FAN_NOISE_RPM: u64 = 100;

/// Data about the machine that all of its AMD GPUs share.
pub(super) struct AmdMachine {
    pub(super) sys_root: PathBuf,
    pub(super) proc_root: PathBuf,
    /// The sysfs folder of the compute driver (KFD).
    pub(super) kfd_root: PathBuf,
    pub(super) clients: Arc<Clients>,
    /// Whether the PIDs in KFD's files are valid in this PID namespace.
    pub(super) sees_host_pids: bool,
    pub(super) fatal_errors: Arc<FatalErrors>,
}

/// One AMD GPU: the files of its card, and the state kept between readings.
pub(super) struct AmdDevice {
    card: Card,
    folder_id: Option<(u64, u64)>,
    identity: Gpu,
    machine: Arc<AmdMachine>,
    hwmon: Hwmon,
    port: PciePort,
    /// The name of the file with the video engines' utilization, if the GPU has one.
    media_use: Option<&'static str>,
    usage: Usage,
    topology: GpuTopology,
    /// Whether the GPU is integrated into the processor.
    is_apu: bool,
    /// The total sizes of VRAM and GTT memory in bytes. Each is read only once.
    memory_sizes: [Option<u64>; 2],
    /// The power limit in watts. While nobody is watching, it is read less often.
    power_limit: Option<Result<f64, Absence>>,
    broken_tables: BrokenTables,
    rates: TableRates,
    energy: Arc<Mutex<EnergyMeter>>,
    ras: RasCounters,
    compute: ComputeProcesses,
    /// Whether the current reading includes the values that are read less often while nobody is
    /// watching, such as the processes.
    is_thorough: bool,
    /// The maximum time to wait for a process scan.
    scan_patience: Duration,
    rest: RestState,
}

/// The GPU's nodes in the compute driver's topology.
struct GpuTopology {
    is_read: bool,
    /// The kernel's generation number for the topology, or `None` if there is no topology.
    generation: Option<u64>,
    nodes: Vec<KfdNode>,
    partitions: Partitions,
    /// The partition profile, for example `CPX/NPS1`.
    profile: Reading<String>,
}

/// The data that determines whether gpumon leaves an idle card alone, so that the system can
/// suspend it.
#[derive(Default)]
struct RestState {
    /// Whether the system may suspend the card. This value is updated whenever the details are
    /// read.
    may_sleep: bool,
    /// Whether the last reading skipped the card, so that the system can suspend it.
    is_resting: bool,
    details: Option<GpuDetails>,
    /// The last sample and its time, if the system may suspend the card.
    sample: Option<(Instant, GpuSample)>,
}

impl AmdDevice {
    /// Opens a GPU and reads its constant data. The system can still suspend an open GPU.
    pub(super) fn open(
        card: &Card,
        index: u32,
        machine: Arc<AmdMachine>,
        energy: Arc<Mutex<EnergyMeter>>,
    ) -> Self {
        let has_media_use = card.device.folder().join(MEDIA_USE_FILE).exists();
        let mut device = Self {
            identity: board::identify_card(card, index, &Absence::NotSupported),
            card: card.open_for_frequent_reading(),
            folder_id: card.folder_id(),
            machine,
            hwmon: Hwmon::find(card.device.folder(), &card.driver).unwrap_or_default(),
            port: PciePort::find(card.device.folder()),
            media_use: has_media_use.then_some(MEDIA_USE_FILE),
            usage: Usage::new(&processes::NAMES),
            topology: GpuTopology {
                is_read: false,
                generation: None,
                nodes: Vec::new(),
                partitions: Partitions::default(),
                profile: Reading::NOT_SUPPORTED,
            },
            is_apu: false,
            memory_sizes: [None; 2],
            power_limit: None,
            broken_tables: BrokenTables::default(),
            rates: TableRates::default(),
            energy,
            ras: RasCounters::default(),
            compute: ComputeProcesses::default(),
            is_thorough: true,
            scan_patience: FIRST_SCAN_PATIENCE,
            rest: RestState {
                may_sleep: card.may_sleep(),
                ..RestState::default()
            },
        };
        device.is_apu = device.is_part_of_processor();
        device.update_topology();
        device.identity.board = board::read_board(
            &device.card,
            &device.port,
            &device.hwmon,
            device.first_node(),
        );
        device
    }

    /// Returns `true` if the GPU is integrated into the processor (an APU). An APU is recognized by
    /// the format of its metrics table, by a voltage sensor for the other parts of the processor
    /// (`vddnb`), or by its PCI device ID. If the metrics table cannot be read at present, a later
    /// reading updates `is_apu`.
    fn is_part_of_processor(&mut self) -> bool {
        let has_sensor = self.hwmon.has_sensor("in", "vddnb");
        let is_mi300a = self.card.pci_id.is_some_and(|(_, device)| device == MI300A);
        has_sensor
            || is_mi300a
            || self
                .read_metrics()
                .is_ok_and(|metrics| metrics.is_apu_table())
    }

    /// Reads the topology if it has changed. While nobody is watching, only readings that include
    /// the processes check for changes.
    fn update_topology(&mut self) {
        if self.topology.is_read && !self.is_thorough {
            return;
        }
        let generation = kfd::read_generation(&self.machine.kfd_root);
        // While the partitioning is being changed, the driver refuses to report the profile. The
        // topology is then read again.
        let is_refused = self.topology.profile == Reading::Absent(Absence::NoAnswer);
        if self.topology.is_read && generation == self.topology.generation && !is_refused {
            return;
        }
        (self.topology.is_read, self.topology.generation) = (true, generation);
        self.memory_sizes = [None; 2];
        self.topology.profile = board::read_profile(&self.card.device);
        let nodes = kfd::find_nodes(&self.machine.kfd_root);
        let is_divided = board::is_partitioned(&self.card.device);
        self.topology.partitions = Partitions::find(&nodes, &self.card.bus_id, is_divided);
        let is_own = |node: &KfdNode| node.bus_id().as_deref() == Some(self.card.bus_id.as_str());
        self.topology.nodes = nodes.into_iter().filter(is_own).collect();
        self.identity.mig_devices = self
            .topology
            .partitions
            .identities(&self.uuid(), &self.topology.profile);
    }

    fn first_node(&self) -> Option<&KfdNode> {
        self.topology.nodes.first()
    }

    fn uuid(&self) -> String {
        self.identity.uuid.clone().unwrap_or_default()
    }

    fn files(&self) -> &Attributes {
        &self.card.device
    }

    /// Returns an error if the card is missing or asleep.
    fn check_card_is_awake(&self) -> Result<(), DeviceError> {
        let folder_id = self.card.folder_id();
        if folder_id.is_none() || folder_id != self.folder_id {
            return Err(DeviceError::Lost);
        }
        self.card.check_is_awake()
    }

    /// Returns the last sample if the card was idle at that time, and if the card must still be
    /// left alone. Reading it now would prevent the system from suspending it.
    fn reusable_sample(&self) -> Option<&(Instant, GpuSample)> {
        let rested @ (at, sample) = self.rest.sample.as_ref()?;
        let is_used = sample
            .utilization
            .gpu_percent
            .value()
            .is_some_and(|percent| *percent > 0.0)
            || has_working_process(sample);
        (!is_used && at.elapsed() < self.card.rest_time_after_reading()?).then_some(rested)
    }

    /// Fills in the last sample instead of reading the card's sensors, so that the system can
    /// suspend the card. Only memory and processes are read. Returns `false` if the card must be
    /// read normally, because it is working or because enough time has passed since its last
    /// reading.
    fn reuse_last_sample(&mut self, sample: &mut GpuSample) -> bool {
        let Some((_, rested)) = self.reusable_sample() else {
            return false;
        };
        let mut rested = rested.clone();
        set_sensor_times(&mut rested);
        (rested.at_ms, rested.uuid) = (sample.at_ms, sample.uuid.take());
        *sample = rested;
        self.read_memory(sample);
        self.read_processes(sample);
        !has_working_process(sample)
    }

    /// Reads the firmware's metrics table.
    fn read_metrics(&mut self) -> Result<Metrics, Absence> {
        let bytes = self.files().read_bytes("gpu_metrics")?;
        let decoded = Metrics::decode(&bytes);
        self.broken_tables
            .record_decode_result(decoded.as_ref().err());
        decoded.map_err(|error| match error {
            MetricsError::Empty => Absence::NotSupported,
            _ => Absence::Unknown,
        })
    }

    /// Reads a memory size, which is constant, or returns the value read earlier.
    fn read_memory_size(&mut self, place: usize, file: &str) -> Result<u64, Absence> {
        if let Some(size) = self.memory_sizes[place] {
            return Ok(size);
        }
        let size = self.files().read_number(file)?;
        self.memory_sizes[place] = Some(size);
        Ok(size)
    }

    fn read_memory(&mut self, sample: &mut GpuSample) {
        let total = self.read_memory_size(0, "mem_info_vram_total");
        let gtt_total = self.read_memory_size(1, "mem_info_gtt_total");
        let bytes = |name| self.files().read_number::<u64>(name);
        let (used, gtt_used) = (bytes("mem_info_vram_used"), bytes("mem_info_gtt_used"));
        // An APU uses a fixed part of the machine's memory (VRAM) and maps more as needed (GTT), so
        // both are added up.
        let is_unified = self.is_apu;
        let both = |one: &Result<u64, Absence>, other: &Result<u64, Absence>| match (one, other) {
            (Ok(one), Ok(other)) if is_unified => Ok(one.saturating_add(*other)),
            _ => one.clone(),
        };
        let (all, in_use) = (both(&total, &gtt_total), both(&used, &gtt_used));
        let unused = |total: &Result<u64, Absence>, used: &Result<u64, Absence>| {
            let (total, used) = (total.clone()?, used.clone()?);
            Ok(total.saturating_sub(used))
        };
        let free = unused(&total, &used);
        sample.memory.free_bytes = if is_unified {
            // The GPU can map only memory that is not in use by other programs.
            let machine = MachineMemory::read(&self.machine.proc_root);
            let available = machine.map_or(u64::MAX, |own| own.available_bytes);
            let mappable = unused(&gtt_total, &gtt_used).map(|bytes| bytes.min(available));
            both(&free, &mappable).into()
        } else {
            free.into()
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
            Some((_, device)) if DEVICES_WITHOUT_UTILIZATION.contains(&device) => {
                Reading::NOT_SUPPORTED
            }
            _ => busy
                .map(f64::from)
                .or_else(|_| get(Field::GfxActivity))
                .into(),
        };
        utilization.memory_percent = percent("mem_busy_percent")
            .or_else(|_| get(Field::MemoryActivity))
            .into();
        let media = self.media_use.map_or(Err(Absence::NotSupported), percent);
        let media = media.or_else(|_| get(Field::MediaActivity));
        let media = media.or_else(|_| find_highest_value(metrics, Field::VcnActivity));
        utilization.media_percent = media.into();
        utilization.jpeg_percent = find_highest_value(metrics, Field::JpegActivity).into();

        let celsius = |label| self.hwmon.read_celsius(label, "input");
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
        let memory = celsius("mem")
            .or_else(|_| get(Field::MemoryTemperature))
            .and_then(board::reject_zero);
        sample.temperature.memory_celsius = memory
            .or_else(|_| find_highest_value(metrics, Field::HbmTemperature))
            .into();

        self.read_clocks(metrics, sample);
        sample.fan_percent = self.read_fan().speed_percent;
        // The metrics table describes the link to the slot, even on boards with a PCIe switch of
        // their own.
        let width = get(Field::PcieWidth).and_then(round_to_whole);
        let width = width.ok().filter(|lanes| *lanes > 0);
        let generation = get(Field::PcieSpeed).ok().and_then(generation_from_speed);
        let (generation, width) = match (generation, width) {
            (Some(generation), Some(width)) => (Ok(generation), Ok(width)),
            (generation, width) => {
                let link = self.port.read_link();
                (
                    generation.map_or(link.generation, Ok),
                    width.map_or(link.width, Ok),
                )
            }
        };
        // On some boards, the reported link is the one to the board's own PCIe switch. It is faster
        // than the link to the slot, so the generation is limited to the maximum for the slot.
        let limit = self.identity.board.pcie_max_generation.value().copied();
        let generation = generation.map(|own| limit.map_or(own, |limit| own.min(limit)));
        sample.pcie.generation = generation.into();
        sample.pcie.width = width.into();
    }

    fn read_clocks(&self, metrics: Option<&Metrics>, sample: &mut GpuSample) {
        let table = |now: Field, average: Field| {
            find_highest_value(metrics, now)
                .or_else(|_| find_highest_value(metrics, average))
                .and_then(round_to_whole)
        };
        let sensor = |label| self.hwmon.read_megahertz(label);
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

    /// Reads power and energy. On an MI250X, the first die reports both for the whole board, and
    /// the second die reports neither.
    fn read_power(&mut self, metrics: Option<&Metrics>, at: Instant, sample: &mut GpuSample) {
        let has_accumulator = self
            .card
            .pci_id
            .is_some_and(|(_, device)| counters::has_accumulator(device));
        if self.power_limit.is_none() || self.is_thorough {
            let limit = self.hwmon.read_millionths("power1_cap");
            self.power_limit = Some(limit);
        }
        let limit = self.power_limit.clone().unwrap_or(Err(Absence::NoAnswer));
        let is_second_die = limit == Ok(0.0) && has_accumulator;
        let read = |file| {
            if is_second_die {
                Err(Absence::NotSupported)
            } else {
                self.hwmon.read_millionths(file)
            }
        };
        // Depending on the product, one or both of these files exist.
        let (average, instant) = (read("power1_average"), read("power1_input"));
        let of_table = |field| {
            metrics
                .and_then(|metrics| metrics.get(field))
                .filter(|_| !is_second_die)
        };
        let draw = average
            .clone()
            .or_else(|_| instant.clone())
            .or_else(|reason| of_table(Field::SocketPower).ok_or(reason));
        let accumulator = of_table(Field::Energy).filter(|_| has_accumulator);
        let mut energy = lock(&self.energy);
        let joules = energy.update(draw.as_ref().ok().copied(), accumulator, at);
        let source = energy.source();
        drop(energy);
        self.identity.board.energy_source = source;
        let missing = source.map_or(Absence::NotSupported, |_| Absence::Unknown);
        let power = &mut sample.power;
        power.energy_joules_total = joules.ok_or(missing).into();
        power.draw_watts = draw.into();
        power.average_watts = average.into();
        power.instant_watts = instant.into();
        power.limit_watts = limit.and_then(board::reject_zero).into();
    }

    fn read_fan(&self) -> Fan {
        let number = |file: &str| self.hwmon.read_number(file);
        let rpm = number("fan1_input").map(|rpm| if rpm < FAN_NOISE_RPM { 0 } else { rpm });
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
        let age = if self.is_thorough {
            SCAN_AGE
        } else {
            SCAN_AGE_UNWATCHED
        };
        let Some(scan) = self
            .machine
            .clients
            .get_recent_scan(age, self.scan_patience)
        else {
            sample.processes = Reading::Absent(Absence::NotReadYet);
            return;
        };
        let own = scan.find_card_clients(&self.card.bus_id);
        self.usage.update(scan.at, &own);
        let compute = if self.machine.sees_host_pids {
            self.compute
                .read_processes(&self.machine.kfd_root, &self.topology.nodes, age)
        } else {
            &[]
        };
        let units = self.topology.nodes.first().and_then(KfdNode::compute_units);
        let listed = processes::list_processes(
            &self.usage,
            &own,
            compute,
            &self.topology.partitions,
            units,
            self.is_apu,
        );
        sample.processes = Reading::Now(listed);
        if scan.is_incomplete {
            let listed_bytes = sample.sum_process_memory().value().copied();
            let used = sample.memory.used_bytes.value();
            sample.unlisted_memory_bytes =
                used.map(|used| used.saturating_sub(listed_bytes.unwrap_or(0)));
        }
    }

    /// Reads all values that the firmware provides. All other values are not supported.
    fn read_firmware(&mut self, at: Instant, sample: &mut GpuSample) -> Result<(), DeviceError> {
        let metrics = self.read_metrics();
        let busy = self.files().read_number::<u32>("gpu_busy_percent");
        if denies_sensor_reads(&metrics, &busy) {
            // The card may have been suspended since the last check.
            self.check_card_is_awake()?;
            return Err(reset_error());
        }
        sample.clear_readings(&Absence::NotSupported);
        let metrics = metrics.ok();
        self.is_apu |= metrics.as_ref().is_some_and(Metrics::is_apu_table);
        self.read_sensors(metrics.as_ref(), busy, sample);
        self.read_power(metrics.as_ref(), at, sample);
        self.rates.fill_rates(metrics.as_ref(), at, sample);
        let samples = self
            .topology
            .partitions
            .read_samples(&self.uuid(), metrics.as_ref());
        if !samples.is_empty() || self.topology.profile.value().is_some() {
            sample.mig_devices = Reading::Now(samples);
        }
        self.rates.earlier = metrics.map(|metrics| TimedTable { at, metrics });
        self.drop_outdated_readings(sample);
        Ok(())
    }

    /// Removes the firmware's readings if they are outdated because the card has recently woken up.
    fn drop_outdated_readings(&self, sample: &mut GpuSample) {
        if self.rest.may_sleep && self.card.has_slept_within(LATCH_TIME) {
            sample.utilization.gpu_percent = Reading::Absent(Absence::WarmingUp);
            sample.clocks.graphics_mhz = Reading::Absent(Absence::WarmingUp);
            sample.clocks.sm_mhz = Reading::Absent(Absence::WarmingUp);
        }
    }
}

impl Device for AmdDevice {
    fn identify(&mut self) -> Gpu {
        self.identity.clone()
    }

    fn read(&mut self, sample: &mut GpuSample, depth: ReadDepth) -> Result<(), DeviceError> {
        self.check_card_is_awake()?;
        self.is_thorough = !matches!(depth, ReadDepth::Unwatched { closes_step: false });
        let is_distrusted = self.machine.fatal_errors.are_resets_pending();
        self.rest.is_resting = !is_distrusted && self.reuse_last_sample(sample);
        if self.rest.is_resting {
            return Ok(());
        }
        self.update_topology();
        let at = Instant::now();
        if is_distrusted {
            sample.clear_readings(&Absence::Distrusted);
            self.rates.earlier = None;
        } else {
            self.read_firmware(at, sample)?;
        }
        self.read_memory(sample);
        self.read_processes(sample);
        self.scan_patience = SCAN_PATIENCE;
        self.rest.sample = self.rest.may_sleep.then(|| (at, sample.clone()));
        Ok(())
    }

    fn read_details(&mut self, details: &mut GpuDetails) -> Result<(), DeviceError> {
        self.check_card_is_awake()?;
        self.rest.may_sleep = self.card.may_sleep();
        if self.machine.fatal_errors.are_resets_pending() {
            details.clear_readings(&Absence::Distrusted);
            details.ecc = self.ras.read(&self.card.device);
            return Ok(());
        }
        details.clear_readings(&Absence::NotSupported);
        if let Some(last) = self.rest.details.as_ref().filter(|_| self.rest.is_resting) {
            *details = last.clone();
            return Ok(());
        }
        details.requested_power_limit_watts = self.hwmon.read_millionths("power1_cap").into();
        self.rates.fill_throttled(details);
        details.ecc = self.ras.read(&self.card.device);
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
        let metrics = self.rates.earlier.as_ref().map(|earlier| &earlier.metrics);
        let replays = metrics.and_then(|metrics| metrics.get_raw(Field::PcieReplays));
        let replays = replays.map_or_else(|| self.files().read_number("pcie_replay_count"), Ok);
        details.pcie_replays_total = replays.into();
        details.nvlinks = metrics
            .and_then(read_links)
            .ok_or(Absence::NotSupported)
            .into();
        let fan = self.read_fan();
        if fan.rpm.value().is_some() || fan.speed_percent.value().is_some() {
            details.fans = Reading::Now(vec![fan]);
        }
        self.rest.details = Some(details.clone());
        Ok(())
    }

    fn take_errors(&mut self) -> Vec<DriverError> {
        self.broken_tables.take_due_error().into_iter().collect()
    }
}

/// Returns `true` if the driver refuses to read the sensors. It does so while the card is being
/// reset.
fn denies_sensor_reads(metrics: &Result<Metrics, Absence>, busy: &Result<u32, Absence>) -> bool {
    let errors = [metrics.as_ref().err(), busy.as_ref().err()];
    errors.iter().all(Option::is_some) && errors.contains(&Some(&Absence::NoAnswer))
}

/// Returns `true` if a process is working on the GPU.
fn has_working_process(sample: &GpuSample) -> bool {
    let processes = sample.processes.value().into_iter().flatten();
    let mut shares = processes.filter_map(|process| process.sm_percent.value());
    shares.any(|share| *share > 0.0)
}

/// Sets the time of each sensor reading to the time of the sample.
fn set_sensor_times(sample: &mut GpuSample) {
    fn set_time<T: Clone>(reading: &mut Reading<T>, at_ms: u64) {
        *reading = reading.clone().with_time(at_ms);
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

fn reset_error() -> DeviceError {
    DeviceError::Failed {
        reason: Absence::NoAnswer,
        meaning: "the driver refuses to read the GPU, as it does during a reset".to_owned(),
        advice: "wait a minute, then see `dmesg | grep amdgpu`".to_owned(),
    }
}

fn round_to_whole(number: f64) -> Result<u32, Absence> {
    (0.0..=f64::from(u32::MAX))
        .contains(&number)
        .then_some(number.round() as u32)
        .ok_or(Absence::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_sensor_reads_indicate_gpu_reset() {
        let (none, reset) = (Err(Absence::NotSupported), Err(Absence::NoAnswer));
        let metrics = || Err(Absence::NoAnswer);
        assert!(denies_sensor_reads(&metrics(), &reset));
        assert!(
            denies_sensor_reads(&metrics(), &none),
            "it has no such file"
        );
        assert!(denies_sensor_reads(&Err(Absence::NotSupported), &reset));
        assert!(!denies_sensor_reads(&metrics(), &Ok(7)));
        assert!(!denies_sensor_reads(&Err(Absence::Unknown), &none));
    }
}
