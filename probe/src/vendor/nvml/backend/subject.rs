//! What each query about a GPU asks the library.

use nvml_wrapper_sys::bindings as sys;

use super::{
    NvmlBackend, instances, links, pcie_port, processes,
    raw::{
        self, Device, Function, Number, Numbers, Plain, ShortText,
        function::{self as f, List, ListOf, Of, Of2, Of3, Out, Out2, Out3, Out4, Text, TextOf},
        numbers, text,
    },
};
use crate::vendor::nvml::query::{Answer, Code, Query as Q, Subject, Value};

/// No GPU has places for more MIG devices; NVML has handles for 7.
const MOST_MIG_DEVICES: u32 = 64;

/// `NVML_TEMPERATURE_GPU`.
const OF_THE_CHIP: u32 = 0;

/// The first six of `nvmlPerfPolicyType_t` have a field each, one after the other.
const POLICIES: u32 = 6;

/// `NVML_CLOCK_ID_CUSTOMER_BOOST_MAX`.
const CUSTOMER_BOOST_MAX: u32 = 3;

/// More clocks than any board has.
const CLOCKS: usize = 512;

/// Room for so many sessions at first.
const SESSIONS: usize = 64;

/// As many processes as the driver accounts for.
const ACCOUNTED: usize = 4000;

/// Somebody asks about an open GPU or MIG device.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) backend: &'a NvmlBackend,
    pub(super) subject: Subject,
    pub(super) device: Device,
}

impl<'a> Target<'a> {
    pub(super) fn answer(self, query: Q) -> Answer {
        match query {
            Q::Name => self.text(&f::NAME),
            Q::Uuid => self.text(&f::UUID),
            Q::Serial => self.text(&f::SERIAL),
            Q::BusId => self.bus_id().map(Value::Text),
            // An older library knows no classes.
            Q::PciInfo => self.newer(
                query,
                || self.out(&f::PCI_INFO_EXT),
                || self.out(&f::PCI_INFO),
            ),
            Q::Brand => self.out(&f::BRAND),
            Q::Architecture => self.out(&f::ARCHITECTURE),
            Q::ComputeCapability => self.out2(&f::COMPUTE_CAPABILITY),
            Q::NumGpuCores => self.out(&f::NUM_GPU_CORES),
            Q::MemoryBusWidth => self.out(&f::MEMORY_BUS_WIDTH),
            Q::MinorNumber => self.out(&f::MINOR_NUMBER),
            Q::MultiGpuBoard => self.out(&f::MULTI_GPU_BOARD),
            Q::BoardId => self.out(&f::BOARD_ID),
            Q::BoardPartNumber => self.text(&f::BOARD_PART_NUMBER),
            // No library exports it: nvidia-smi finds it in a table that has no documentation.
            Q::GpuPartNumber => Err(Code::FUNCTION_NOT_FOUND),
            Q::ModuleId => self.out(&f::MODULE_ID),
            Q::Pdi => self.out(&f::PDI),
            Q::Hostname => self.short_text(&f::HOSTNAME),
            Q::PlatformInfo => self.out(&f::PLATFORM_INFO),
            Q::VbiosVersion => self.text(&f::VBIOS_VERSION),
            Q::InforomImageVersion => self.text(&f::INFOROM_IMAGE_VERSION),
            Q::InforomVersion(object) => self.text_of(&f::INFOROM_VERSION, object),
            Q::InforomIsValid => self
                .library()
                .check(&f::VALIDATE_INFOROM, self.device)
                .map(|()| Value::Numbers(Vec::new())),
            Q::LastBbxFlush => self.out2(&f::LAST_BBX_FLUSH),
            Q::TimeRun => self.out(&f::BBX_TIME_DATA),
            Q::GspFirmwareVersion => self.short_text(&f::GSP_FIRMWARE_VERSION),
            Q::GspFirmwareMode => self.out2(&f::GSP_FIRMWARE_MODE),

            Q::DisplayMode => self.out(&f::DISPLAY_MODE),
            Q::DisplayActive => self.out(&f::DISPLAY_ACTIVE),
            Q::PersistenceMode => self.out(&f::PERSISTENCE_MODE),
            Q::AddressingMode => self.out(&f::ADDRESSING_MODE),
            Q::ComputeMode => self.out(&f::COMPUTE_MODE),
            Q::MigMode => self.out2(&f::MIG_MODE),
            Q::EccMode => self.out2(&f::ECC_MODE),
            Q::DramEncryptionMode => self.out2(&f::DRAM_ENCRYPTION_MODE),
            Q::GpuOperationMode => self.out2(&f::GPU_OPERATION_MODE),
            Q::DriverModel => self.out2(&f::DRIVER_MODEL),
            Q::AccountingMode => self.out(&f::ACCOUNTING_MODE),
            Q::AccountingBufferSize => self.out(&f::ACCOUNTING_BUFFER_SIZE),
            Q::VirtualizationMode => self.out(&f::VIRTUALIZATION_MODE),
            Q::HostVgpuMode => self.out(&f::HOST_VGPU_MODE),
            Q::VgpuHeterogeneousMode => self.out(&f::VGPU_HETEROGENEOUS_MODE),
            Q::VgpuCapability(capability) => self.of(&f::VGPU_CAPABILITY, capability),
            Q::C2cMode => self.out(&f::C2C_MODE),
            Q::Capabilities => self.out(&f::CAPABILITIES),
            Q::AutoBoost => self.out2(&f::AUTO_BOOST),
            Q::WorkloadPowerProfiles => self.out(&f::WORKLOAD_POWER_PROFILES),

            Q::UtilizationRates => self.out(&f::UTILIZATION_RATES),
            Q::EncoderUtilization => self.out2(&f::ENCODER_UTILIZATION),
            Q::DecoderUtilization => self.out2(&f::DECODER_UTILIZATION),
            Q::JpgUtilization => self.out2(&f::JPG_UTILIZATION),
            Q::OfaUtilization => self.out2(&f::OFA_UTILIZATION),
            Q::EncoderStats => self.out3(&f::ENCODER_STATS),
            Q::EncoderSessions => self.list(&f::ENCODER_SESSIONS, SESSIONS),
            Q::FbcSessions => self.list(&f::FBC_SESSIONS, SESSIONS),
            Q::GpmStreaming => self.out(&f::GPM_STREAMING),
            Q::FbcStats => self.out(&f::FBC_STATS),
            Q::MemoryInfo => self.newer(
                query,
                || self.out(&f::MEMORY_INFO),
                || self.memory_info_v1(),
            ),
            Q::MemoryInfoV1 => self.out(&f::MEMORY_INFO_V1),
            Q::Bar1MemoryInfo => self.out(&f::BAR1_MEMORY_INFO),
            Q::ProtectedMemory => self.out(&f::PROTECTED_MEMORY),
            Q::ConfComputeMemorySize => self.out(&f::CONF_COMPUTE_MEMORY),
            Q::Temperature => {
                let chip = || sys::nvmlTemperature_v1_t {
                    sensorType: OF_THE_CHIP,
                    ..Plain::blank()
                };
                self.newer(
                    query,
                    || self.fill(&f::TEMPERATURE_V, chip()),
                    || self.of(&f::TEMPERATURE, OF_THE_CHIP),
                )
            }
            Q::MarginTemperature => self.out(&f::MARGIN_TEMPERATURE),
            Q::TemperatureThreshold(threshold) => self.of(&f::TEMPERATURE_THRESHOLD, threshold),
            Q::FanSpeed => self.out(&f::FAN_SPEED),
            Q::NumFans => self.out(&f::NUM_FANS),
            Q::FanSpeedOf(fan) => self.of(&f::FAN_SPEED_OF, fan),
            Q::FanSpeedRpm(fan) => self.fill(
                &f::FAN_SPEED_RPM,
                sys::nvmlFanSpeedInfo_t {
                    fan,
                    ..Plain::blank()
                },
            ),
            Q::PerformanceState => self.out(&f::PERFORMANCE_STATE),
            Q::SupportedThrottleReasons => {
                let older = || self.out(&f::SUPPORTED_THROTTLE_REASONS);
                self.newer(query, || self.out(&f::SUPPORTED_EVENT_REASONS), older)
            }
            Q::ThrottleReasons => self.newer(
                query,
                || self.out(&f::EVENT_REASONS),
                || self.out(&f::THROTTLE_REASONS),
            ),
            Q::ViolationStatus(policy) => self.newer(
                query,
                || self.violation_time(policy),
                || self.of(&f::VIOLATION_STATUS, policy),
            ),
            Q::TotalEnergyConsumption => self.out(&f::TOTAL_ENERGY_CONSUMPTION),
            Q::PowerUsage => self.out(&f::POWER_USAGE),
            Q::PowerManagementMode => self.out(&f::POWER_MANAGEMENT_MODE),
            Q::PowerLimit => self.out(&f::POWER_LIMIT),
            Q::EnforcedPowerLimit => self.out(&f::ENFORCED_POWER_LIMIT),
            Q::DefaultPowerLimit => self.out(&f::DEFAULT_POWER_LIMIT),
            Q::PowerLimitConstraints => self.out2(&f::POWER_LIMIT_CONSTRAINTS),
            Q::Clock(kind) => self.of(&f::CLOCK_INFO, kind),
            Q::MaxClock(kind) => self.of(&f::MAX_CLOCK_INFO, kind),
            Q::ApplicationsClock(kind) => self.of(&f::APPLICATIONS_CLOCK, kind),
            Q::DefaultApplicationsClock(kind) => self.of(&f::DEFAULT_APPLICATIONS_CLOCK, kind),
            Q::CustomerBoostClock(kind) => self.of2(&f::CLOCK, [kind, CUSTOMER_BOOST_MAX]),
            Q::SupportedMemoryClocks => self.list(&f::SUPPORTED_MEMORY_CLOCKS, CLOCKS),
            Q::SupportedGraphicsClocks(memory) => {
                self.list_of(&f::SUPPORTED_GRAPHICS_CLOCKS, memory, CLOCKS)
            }
            Q::Field(id, scope) => self
                .fields(&[raw::Field { id, scope }])
                .pop()
                .unwrap_or(Err(Code::UNKNOWN)),
            Q::Samples(kind, since_us) => self.list_samples(kind, since_us),

            Q::TotalEccErrors(kind, counter) => self.of2(&f::TOTAL_ECC_ERRORS, [kind, counter]),
            Q::MemoryErrors(kind, counter, location) => {
                self.of3(&f::MEMORY_ERROR_COUNTER, [kind, counter, location])
            }
            Q::SramEccErrors => self.out(&f::SRAM_ECC_ERROR_STATUS),
            Q::RepairStatus => self.out(&f::REPAIR_STATUS),
            Q::UnrepairableMemory => self.out(&f::UNREPAIRABLE_MEMORY),
            Q::RetiredPages(cause) => self.newer(
                query,
                || self.retired_pages(cause),
                || self.retired_pages_v1(cause),
            ),
            Q::RetiredPagesPending => self.out(&f::RETIRED_PAGES_PENDING),
            Q::RemappedRows => self.out4(&f::REMAPPED_ROWS),
            Q::RemappedRowsV2 => self.out(&f::REMAPPED_ROWS_V2),
            Q::RowRemapperHistogram => self.out(&f::ROW_REMAPPER_HISTOGRAM),

            Q::PcieGeneration => self.out(&f::PCIE_GENERATION),
            Q::MaxPcieGeneration => self.out(&f::MAX_PCIE_GENERATION),
            Q::GpuMaxPcieGeneration => self.out(&f::GPU_MAX_PCIE_GENERATION),
            Q::HostMaxPcieGeneration => {
                pcie_port::max_generation(&self.backend.sys_root, &self.bus_id()?)
            }
            Q::PcieWidth => self.out(&f::PCIE_WIDTH),
            Q::MaxPcieWidth => self.out(&f::MAX_PCIE_WIDTH),
            Q::PcieReplays => self.out(&f::PCIE_REPLAYS),
            Q::PcieThroughput(counter) => self.of(&f::PCIE_THROUGHPUT, counter),
            Q::BridgeChips => self.out(&f::BRIDGE_CHIPS),
            Q::FabricInfo => {
                self.newest(&f::FABRIC_INFO, |info: &mut sys::nvmlGpuFabricInfo_v3_t| {
                    info.version = raw::version_of::<sys::nvmlGpuFabricInfo_v2_t>(2);
                })
            }
            Q::NvLinkRemoteBusId(link) => {
                let remote = self
                    .library()
                    .of(&f::NVLINK_REMOTE_PCI_INFO, self.device, link)?;
                Ok(Value::Text(text(&remote.busId)))
            }
            Q::NvLinkCapability(link, capability) => {
                self.of2(&f::NVLINK_CAPABILITY, [link, capability])
            }
            Q::NvLinkState(link) => self.of(&f::NVLINK_STATE, link),
            Q::NvLinkVersion(link) => self.of(&f::NVLINK_VERSION, link),
            Q::NvLinkRemoteDeviceType(link) => self.of(&f::NVLINK_REMOTE_DEVICE_TYPE, link),
            // The first version has no more than the two numbers with which the second begins.
            Q::NvLinkInfo => self.newest(&f::NVLINK_INFO, |info: &mut sys::nvmlNvLinkInfo_v2_t| {
                info.version = raw::version_of::<[u32; 2]>(1);
            }),
            Q::CpuAffinity => self.library().cpu_affinity(self.device).map(numbers),
            Q::MemoryAffinity => self.library().memory_affinity(self.device).map(numbers),
            Q::NumaNode => self.out(&f::NUMA_NODE),
            Q::NearestGpus(level) => links::nearest_gpus(self, level),
            Q::CommonAncestor(other) => links::common_ancestor(self, other),
            Q::P2pStatus(other, capability) => links::p2p_status(self, other, capability),

            Q::ComputeProcesses => processes::running(self, &processes::COMPUTE),
            Q::GraphicsProcesses => processes::running(self, &processes::GRAPHICS),
            Q::MpsProcesses => processes::running(self, &processes::MPS),
            Q::ProcessUtilization(since_us) => processes::utilization(self, since_us),
            Q::AccountingPids => self.list(&f::ACCOUNTING_PIDS, ACCOUNTED),
            Q::AccountingStats(pid) => self.of(&f::ACCOUNTING_STATS, pid),

            Q::MaxMigDevices => self.out(&f::MAX_MIG_DEVICES),
            Q::MigDevices => self.mig_devices(),
            Q::MigInstance => {
                let gpu: u32 = self.library().out(&f::GPU_INSTANCE_ID, self.device)?;
                let compute: u32 = self.library().out(&f::COMPUTE_INSTANCE_ID, self.device)?;
                Ok(Value::Numbers(vec![gpu.into(), compute.into()]))
            }
            Q::MigAttributes => self.out(&f::ATTRIBUTES),
            Q::GpuInstanceProfile(profile) => instances::gpu_profile(self, profile),
            Q::GpuInstanceProfileName(profile) => instances::gpu_profile_name(self, profile),
            Q::GpuInstanceCapacity(id) => self.of(&f::GPU_INSTANCE_CAPACITY, id),
            Q::GpuInstancePlacements(id) => instances::gpu_places(self, id),
            Q::GpuInstances(id) => instances::gpu_instances(self, id),
            Q::ComputeInstanceProfile(within, profile) => {
                instances::compute_profile(self, within, profile)
            }
            Q::ComputeInstanceProfileName(within, profile) => {
                instances::compute_profile_name(self, within, profile)
            }
            Q::ComputeInstanceCapacity(within, id) => instances::compute_capacity(self, within, id),
            Q::ComputeInstancePlacements(within, id) => instances::compute_places(self, within, id),
            Q::ComputeInstances(within, id) => instances::compute_instances(self, within, id),
        }
    }

    pub(super) fn library(self) -> &'a raw::Library {
        self.backend.library
    }

    /// Several fields by one call, in their order.
    pub(super) fn fields(self, fields: &[raw::Field]) -> Vec<Answer> {
        let value = |number| match number {
            Number::Whole(whole) => Value::Numbers(vec![whole]),
            Number::Real(real) => Value::Reals(vec![real]),
        };
        match self.library().fields(self.device, fields) {
            Ok(numbers) => numbers
                .into_iter()
                .map(|number| number.map(|(_at, number)| value(number)))
                .collect(),
            Err(code) => vec![Err(code); fields.len()],
        }
    }

    fn text(self, function: &Function<Text>) -> Answer {
        self.library().text(function, self.device).map(Value::Text)
    }

    fn text_of(self, function: &Function<TextOf>, what: u32) -> Answer {
        self.library()
            .text_of(function, self.device, what)
            .map(Value::Text)
    }

    fn short_text(self, function: &Function<Out<ShortText>>) -> Answer {
        self.library()
            .out(function, self.device)
            .map(|room| Value::Text(text(&room)))
    }

    fn bus_id(self) -> Result<String, Code> {
        Ok(text(&self.library().out(&f::PCI_INFO, self.device)?.busId))
    }

    fn out<T: Plain + Numbers>(self, function: &Function<Out<T>>) -> Answer {
        self.fill(function, T::blank())
    }

    fn fill<T: Plain + Numbers>(self, function: &Function<Out<T>>, value: T) -> Answer {
        self.library()
            .fill(function, self.device, value)
            .map(|value| numbers([value]))
    }

    fn out2<T: Plain + Numbers>(self, function: &Function<Out2<T>>) -> Answer {
        self.library().out2(function, self.device).map(numbers)
    }

    fn out3<T: Plain + Numbers>(self, function: &Function<Out3<T>>) -> Answer {
        self.library().out3(function, self.device).map(numbers)
    }

    fn out4<T: Plain + Numbers>(self, function: &Function<Out4<T>>) -> Answer {
        self.library().out4(function, self.device).map(numbers)
    }

    pub(super) fn of<T: Plain + Numbers>(self, function: &Function<Of<T>>, what: u32) -> Answer {
        self.library()
            .of(function, self.device, what)
            .map(|value| numbers([value]))
    }

    fn of2<T: Plain + Numbers>(self, function: &Function<Of2<T>>, what: [u32; 2]) -> Answer {
        self.library()
            .of2(function, self.device, what)
            .map(|value| numbers([value]))
    }

    fn of3<T: Plain + Numbers>(self, function: &Function<Of3<T>>, what: [u32; 3]) -> Answer {
        self.library()
            .of3(function, self.device, what)
            .map(|value| numbers([value]))
    }

    fn list<T: Plain + Numbers>(self, function: &Function<List<T>>, room: usize) -> Answer {
        self.library()
            .list(function, self.device, room)
            .map(numbers)
    }

    fn list_of<T: Plain + Numbers>(
        self,
        function: &Function<ListOf<T>>,
        what: u32,
        room: usize,
    ) -> Answer {
        self.library()
            .list_of(function, self.device, what, room)
            .map(numbers)
    }

    /// A structure in its newest version, or in the one before, which is a beginning of it.
    fn newest<T: Plain + Numbers>(
        self,
        function: &Function<Out<T>>,
        make_older: impl FnOnce(&mut T),
    ) -> Answer {
        match self.out(function) {
            Err(Code::ARGUMENT_VERSION_MISMATCH) => {
                let mut older = T::blank();
                make_older(&mut older);
                self.fill(function, older)
            }
            answer => answer,
        }
    }

    /// By the newer of two functions, see [`Gpu::newer_or_older`](super::gpu::Gpu::newer_or_older).
    fn newer(
        self,
        query: Q,
        newer: impl FnOnce() -> Answer,
        older: impl FnOnce() -> Answer,
    ) -> Answer {
        self.backend
            .gpu(self.subject.gpu)?
            .newer_or_older((self.subject.mig, query), newer, older)
    }

    /// What `nvmlDeviceGetViolationStatus` says, from a field, which the driver answers from a memory of at most 100 ms.
    fn violation_time(self, policy: u32) -> Answer {
        if policy >= POLICIES {
            return Err(Code::FUNCTION_NOT_FOUND);
        }
        let field = raw::Field {
            id: sys::field_id::NVML_FI_DEV_PERF_POLICY_POWER.saturating_add(policy),
            scope: 0,
        };
        match self.library().fields(self.device, &[field])?.pop() {
            Some(Ok((at_us, Number::Whole(ns)))) => Ok(Value::Numbers(vec![at_us.into(), ns])),
            // So says a driver of a field that it does not know.
            Some(Err(Code::NOT_SUPPORTED)) => Err(Code::FUNCTION_NOT_FOUND),
            Some(Err(code)) => Err(code),
            _ => Err(Code::UNKNOWN),
        }
    }

    fn memory_info_v1(self) -> Answer {
        let old = self.library().out(&f::MEMORY_INFO_V1, self.device)?;
        Ok(Value::Numbers(vec![
            old.total.into(),
            -1,
            old.free.into(),
            old.used.into(),
        ]))
    }

    fn retired_pages(self, cause: u32) -> Answer {
        let pages = self.library().retired_pages(self.device, cause)?;
        Ok(Value::Numbers(
            pages
                .into_iter()
                .flat_map(|(at, address)| [at.into(), address.into()])
                .collect(),
        ))
    }

    fn retired_pages_v1(self, cause: u32) -> Answer {
        let pages = self
            .library()
            .list_of(&f::RETIRED_PAGES_V1, self.device, cause, 64)?;
        Ok(Value::Numbers(
            pages
                .into_iter()
                .flat_map(|address| [0, address.into()])
                .collect(),
        ))
    }

    /// What the driver keeps of this `nvmlSamplingType_t` from after this time on (us since the epoch).
    fn list_samples(self, kind: u32, since_us: u64) -> Answer {
        let samples = self.library().samples(self.device, kind, since_us)?;
        let whole: Option<Vec<[i128; 2]>> = samples
            .iter()
            .map(|(at, number)| match number {
                Number::Whole(whole) => Some([(*at).into(), *whole]),
                Number::Real(_) => None,
            })
            .collect();
        let real = |number: &Number| match number {
            Number::Whole(whole) => *whole as f64,
            Number::Real(real) => *real,
        };
        Ok(match whole {
            Some(whole) => Value::Numbers(whole.concat()),
            None => Value::Reals(
                samples
                    .iter()
                    .flat_map(|(at, number)| [*at as f64, real(number)])
                    .collect(),
            ),
        })
    }

    /// Where MIG is off, no place has one: that is a list, too.
    fn mig_devices(self) -> Answer {
        let most = self
            .out(&f::MAX_MIG_DEVICES)?
            .at(0)
            .and_then(|most| u32::try_from(most).ok());
        let most = most.unwrap_or(0).min(MOST_MIG_DEVICES);
        let (mut there, mut failure) = (Vec::new(), None);
        for index in 0..most {
            match self.backend.device(Subject::mig(self.subject.gpu, index)) {
                Ok(_) => there.push(index.into()),
                Err(Code::NOT_FOUND) => {}
                Err(code) => failure = Some(code),
            }
        }
        // A device that this user may not see does not hide the others.
        failure
            .filter(|_| there.is_empty())
            .map_or(Ok(Value::Numbers(there)), Err)
    }
}
