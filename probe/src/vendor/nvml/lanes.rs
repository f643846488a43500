//! Which call is made when: the one table of all that a collector asks the driver by itself.
//!
//! What is not here is only asked for whoever wants to know it, as nvidia-smi's face does.

use std::{collections::HashMap, sync::LazyLock, time::Duration};

use nvml_wrapper_sys::bindings::{
    NVML_NVLINK_MAX_LINKS,
    field_id::{
        NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, NVML_FI_DEV_MEMORY_TEMP,
        NVML_FI_DEV_NVLINK_ERROR_DL_CRC, NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY,
        NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY, NVML_FI_DEV_NVLINK_GET_SPEED,
        NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX,
        NVML_FI_DEV_POWER_AVERAGE, NVML_FI_DEV_POWER_INSTANT,
    },
};

use crate::vendor::nvml::query::{Answer, Query as Q, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// With every sample, also with the only one of a single look.
    Tick,
    /// With samples, but no more often than this, and in no single look: it costs more than all of the tick's together.
    /// While nobody watches, with the last sample of each step of history.
    Paced(Duration),
    /// Once for each opening of the GPU, with the first details.
    Once,
    /// With the details. While nobody watches, what is dear no more often than [`UNWATCHED_EVERY`].
    Slow,
    /// With the details, but no more often than this, and more rarely by as much while nobody watches.
    Slower(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// The model, and nvidia-smi's face.
    Model,
    /// nvidia-smi's face alone, which asks a collector rather than the driver.
    Smi,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) query: Q,
    pub(super) lane: Lane,
    pub(super) reader: Reader,
    /// 0 where it depends on what there is.
    pub(super) cost_us: u32,
}

impl Call {
    /// The least time between two of it; none where it is made whenever its lane's turn comes.
    pub(super) fn period(&self, is_watched: bool) -> Duration {
        match (self.lane, is_watched) {
            (Lane::Paced(period) | Lane::Slower(period), true) => period,
            (Lane::Slower(period), false) => period.saturating_mul(UNWATCHED_FACTOR),
            (Lane::Slow, false) if self.cost_us >= DEAR_US => UNWATCHED_EVERY,
            (Lane::Paced(_) | Lane::Tick | Lane::Once | Lane::Slow, _) => Duration::ZERO,
        }
    }
}

/// A call, and what it costs on an H200 in us: the median of 20 calls, 2 ms apart (driver 580.159,
/// `probe/examples/call_costs.rs`).
type Row = (Q, u32);

pub(in crate::vendor) const MEMORY_CELSIUS: Q = Q::Field(NVML_FI_DEV_MEMORY_TEMP, 0);
pub(in crate::vendor) const POWER_INSTANT: Q = Q::Field(NVML_FI_DEV_POWER_INSTANT, 0);
pub(in crate::vendor) const POWER_AVERAGE: Q = Q::Field(NVML_FI_DEV_POWER_AVERAGE, 0);
pub(in crate::vendor) const RECOVERY_ACTION: Q = Q::Field(NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, 0);

/// `NVML_FI_DEV_NVLINK_GET_SPEED` of a link, in MB per second.
pub(super) const fn link_speed(link: u32) -> Q {
    Q::Field(NVML_FI_DEV_NVLINK_GET_SPEED, link)
}

/// What a link sent and received, in KiB, and its errors by kind: 1.8 ms for each link.
pub(super) const fn link_counters(link: u32) -> [Q; 5] {
    [
        Q::Field(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, link),
        Q::Field(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, link),
        Q::Field(NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY, link),
        Q::Field(NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY, link),
        Q::Field(NVML_FI_DEV_NVLINK_ERROR_DL_CRC, link),
    ]
}

/// What all links together sent and received, in KiB. Not in the table: where there is GPM, nobody needs it.
pub(super) const ALL_LINKS: [Q; 2] = [
    Q::Field(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, u32::MAX),
    Q::Field(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, u32::MAX),
];

/// The counter moves every 100 ms, and asking costs 3 ms, more than all of a tick together.
const ENERGY_EVERY: Duration = Duration::from_secs(5);

/// It follows the chip's temperature, and asking costs 1.2 ms.
const MARGIN_EVERY: Duration = Duration::from_secs(5);

/// The counters of 18 links cost 32 ms.
const LINK_COUNTERS_EVERY: Duration = Duration::from_mins(1);

/// The details that cost as much or more take 12 ms together, all others 0.6 ms. No condition is found by the former.
const DEAR_US: u32 = 100;

/// Less than a minute, after which a reading counts as old: some of them tell what a condition is beside.
const UNWATCHED_EVERY: Duration = Duration::from_secs(50);

/// As many times more rarely as those.
const UNWATCHED_FACTOR: u32 = 5;

/// No GPU has more links.
pub(super) const MOST_LINKS: u32 = NVML_NVLINK_MAX_LINKS;

/// No board has more fans.
pub(super) const MOST_FANS: u32 = 64;

/// `nvmlMemoryLocation_t`.
pub(super) const MEMORY_LOCATIONS: std::ops::Range<u32> = 0..8;

/// `NVML_POWER_SCOPE_GPU`, `NVML_POWER_SCOPE_MODULE`, `NVML_POWER_SCOPE_MEMORY`.
const POWER_SCOPES: [u32; 3] = [0, 1, 2];

/// So many of the processes that the driver accounts for are asked about.
pub(super) const ACCOUNTED: usize = 64;

pub(super) static CALLS: LazyLock<Vec<Call>> = LazyLock::new(|| {
    let rows = |lane, reader, rows: Vec<Row>| {
        rows.into_iter().map(move |(query, cost_us)| Call {
            query,
            lane,
            reader,
            cost_us,
        })
    };
    rows(Lane::Tick, Reader::Model, tick())
        .chain(rows(
            Lane::Paced(ENERGY_EVERY),
            Reader::Model,
            vec![(Q::TotalEnergyConsumption, 3200)],
        ))
        .chain(rows(
            Lane::Paced(MARGIN_EVERY),
            Reader::Model,
            vec![(Q::MarginTemperature, 1190)],
        ))
        .chain(rows(Lane::Once, Reader::Model, once()))
        .chain(rows(Lane::Once, Reader::Smi, once_for_smi()))
        .chain(rows(Lane::Slow, Reader::Model, slow()))
        .chain(rows(Lane::Slow, Reader::Smi, slow_for_smi()))
        .collect()
});

/// Whether a collector's answer serves other programs, too: what the table has. What an answer raised, such as the
/// counters of links, may be older than a tool's user expects.
pub(super) fn is_recorded(query: Q) -> bool {
    lane_of(query).is_some()
}

/// Whether the answer stays the same for as long as the GPU is open.
pub(super) fn is_lasting(query: Q) -> bool {
    lane_of(query) == Some(Lane::Once)
}

/// Every query that a collector's answers may be told of, with what asking costs on an H200 in us.
pub fn shared_queries() -> impl Iterator<Item = (Q, u32)> {
    let others = IDENTITY
        .map(|query| (query, 5))
        .into_iter()
        .chain([0, 1].map(|way| (Q::PcieThroughput(way), 20_900)));
    CALLS
        .iter()
        .map(|call| (call.query, call.cost_us))
        .chain(others)
}

pub(super) const IDENTITY: [Q; 3] = [Q::Uuid, Q::Name, Q::BusId];

fn lane_of(query: Q) -> Option<Lane> {
    static LANES: LazyLock<HashMap<Q, Lane>> =
        LazyLock::new(|| CALLS.iter().map(|call| (call.query, call.lane)).collect());
    match query {
        Q::Name | Q::Uuid | Q::BusId | Q::SupportedGraphicsClocks(_) => Some(Lane::Once),
        // As GPM counts it, or a thread of its own has measured it: asking takes 20 ms.
        Q::PcieThroughput(_) => Some(Lane::Tick),
        query => LANES.get(&query).copied(),
    }
}

/// Most of them are answered by a cache inside the library, which takes up to 4 ms when it looks anew.
fn tick() -> Vec<Row> {
    vec![
        (Q::MemoryInfo, 23),
        (Q::UtilizationRates, 5),
        (Q::EncoderUtilization, 5),
        (Q::DecoderUtilization, 5),
        (Q::JpgUtilization, 6),
        (Q::OfaUtilization, 4),
        (Q::PowerUsage, 5),
        (Q::EnforcedPowerLimit, 3),
        (Q::Temperature, 4),
        (Q::Clock(0), 5),
        (Q::Clock(1), 7),
        (Q::Clock(2), 3),
        (Q::Clock(3), 7),
        (Q::PerformanceState, 3),
        (Q::ThrottleReasons, 9),
        (Q::PcieGeneration, 7),
        (Q::PcieWidth, 74),
        // Those that cost more have no place here: fields are one call, and one of them delays all.
        (MEMORY_CELSIUS, 10),
        (POWER_INSTANT, 10),
        (POWER_AVERAGE, 10),
        (Q::FanSpeed, 384),
        (Q::ComputeProcesses, 33),
        (Q::GraphicsProcesses, 37),
        (Q::MpsProcesses, 27),
    ]
}

fn once() -> Vec<Row> {
    let mut queries = vec![
        (Q::Serial, 7),
        (Q::BoardPartNumber, 6),
        (Q::VbiosVersion, 6),
        (Q::Architecture, 6),
        (Q::ComputeCapability, 6),
        (Q::NumGpuCores, 394),
        (Q::MemoryBusWidth, 452),
        (Q::MinorNumber, 4),
        (Q::NumaNode, 16),
        (Q::MaxPcieGeneration, 4),
        (Q::MaxPcieWidth, 4),
        (Q::DefaultPowerLimit, 6),
        (Q::PowerLimitConstraints, 5),
    ];
    queries.extend((0..4).map(|kind| (Q::MaxClock(kind), 1800)));
    queries.extend((0..4).map(|threshold| (Q::TemperatureThreshold(threshold), 450)));
    queries
}

/// How the board was set up and what it lacks, as far as the model has no place for it.
fn once_for_smi() -> Vec<Row> {
    let mut queries = vec![
        (Q::PciInfo, 1066),
        (Q::Brand, 7),
        (Q::MultiGpuBoard, 20),
        (Q::BoardId, 24),
        (Q::ModuleId, 4),
        (Q::Pdi, 433),
        (Q::Hostname, 6),
        (Q::PlatformInfo, 432),
        (Q::InforomImageVersion, 9),
        (Q::InforomIsValid, 68873),
        (Q::LastBbxFlush, 344),
        (Q::GspFirmwareVersion, 22),
        (Q::GspFirmwareMode, 22),
        (Q::AddressingMode, 6),
        (Q::DramEncryptionMode, 7),
        (Q::GpuOperationMode, 7),
        (Q::DriverModel, 6),
        (Q::AccountingBufferSize, 5),
        (Q::VirtualizationMode, 7),
        (Q::HostVgpuMode, 6),
        (Q::VgpuHeterogeneousMode, 6),
        (Q::Capabilities, 7),
        (Q::AutoBoost, 6),
        (Q::SupportedThrottleReasons, 8),
        (Q::PowerManagementMode, 360),
        (Q::CustomerBoostClock(0), 1139),
        (Q::GpuMaxPcieGeneration, 8),
        (Q::HostMaxPcieGeneration, 36),
        (Q::BridgeChips, 7),
        (Q::MaxMigDevices, 341),
        (Q::SupportedMemoryClocks, 5),
    ];
    queries.extend((0..3).map(|object| (Q::InforomVersion(object), 5)));
    queries.extend([0, 1, 2, 9, 10, 11].map(|capability| (Q::VgpuCapability(capability), 3)));
    queries.extend((4..8).map(|threshold| (Q::TemperatureThreshold(threshold), 7)));
    queries.extend([0, 2].map(|kind| (Q::DefaultApplicationsClock(kind), 1145)));
    // Thresholds by margin, PCIe atomics.
    queries.extend([193, 194, 195, 196, 228, 229].map(|field| (Q::Field(field, 0), 60)));
    // Power limits of the GPU, its module and its base power.
    queries.extend(
        [0, 1, 3]
            .iter()
            .flat_map(|scope| (187..=192).map(|field| (Q::Field(field, *scope), 280))),
    );
    // Power smoothing; 5 is the profile in force.
    queries.extend([0, 5].into_iter().flat_map(|scope| {
        (251..=268)
            .chain(275..=288)
            .map(move |field| (Q::Field(field, scope), 375))
    }));
    queries.push((Q::Field(300, 0), 375));
    queries
}

/// What changes slowly, without what the links raise.
fn slow() -> Vec<Row> {
    let mut queries = vec![
        (Q::PersistenceMode, 14),
        (Q::ComputeMode, 24),
        (Q::EccMode, 365),
        (Q::MigMode, 378),
        (Q::AccountingMode, 30),
        (Q::DisplayActive, 387),
        (Q::ApplicationsClock(0), 1254),
        (Q::ApplicationsClock(2), 1251),
        (Q::PowerLimit, 392),
        (Q::RetiredPages(0), 10),
        (Q::RetiredPages(1), 10),
        (Q::RetiredPagesPending, 8),
        (Q::RemappedRows, 4),
        (Q::RowRemapperHistogram, 3),
        (Q::Bar1MemoryInfo, 369),
        (Q::PcieReplays, 381),
        (Q::FabricInfo, 11),
        (Q::C2cMode, 2),
        (RECOVERY_ACTION, 31),
        (Q::NumFans, 4),
        (Q::NvLinkState(0), 16),
    ];
    queries.extend((0..6).map(|policy| (Q::ViolationStatus(policy), 400)));
    for counter in 0..2 {
        queries.extend((0..2).map(|kind| (Q::TotalEccErrors(kind, counter), 10)));
        queries.extend(
            MEMORY_LOCATIONS.flat_map(|place| {
                (0..2).map(move |kind| (Q::MemoryErrors(kind, counter, place), 7))
            }),
        );
    }
    queries
}

fn slow_for_smi() -> Vec<Row> {
    let mut queries = vec![
        (Q::DisplayMode, 388),
        (Q::EncoderStats, 28),
        (Q::FbcStats, 26),
        (Q::ProtectedMemory, 29),
        (Q::SramEccErrors, 8),
        (Q::RepairStatus, 388),
        (Q::UnrepairableMemory, 381),
        (Q::AccountingPids, 25),
        (Q::RemappedRowsV2, 4),
        (Q::TimeRun, 344),
        (Q::Field(274, 0), 10),
        (Q::WorkloadPowerProfiles, 390),
        (Q::MigDevices, 382),
    ];
    // Times of throttling, PCIe replays' rollovers.
    queries.extend([74, 76, 95, 269, 270, 271].map(|field| (Q::Field(field, 0), 400)));
    // Average and instantaneous power of the module and the memory.
    queries.extend(
        POWER_SCOPES[1..]
            .iter()
            .flat_map(|scope| [185, 186].map(|field| (Q::Field(field, *scope), 10))),
    );
    queries
}

pub(super) fn follow_up_calls(query: Q, answer: &Answer) -> Vec<Call> {
    let call = |lane, reader, query| Call {
        query,
        lane,
        reader,
        cost_us: 0,
    };
    let number = answer.as_ref().ok().and_then(|value| value.at(0));
    match (query, number) {
        // Drivers before 510 have the older function alone.
        (Q::MemoryInfo, None) => vec![call(Lane::Tick, Reader::Model, Q::MemoryInfoV1)],
        (Q::AccountingMode, Some(1)) => vec![call(Lane::Slow, Reader::Model, Q::AccountingPids)],
        // The driver lists the oldest first, remembers thousands, and each costs a call.
        (Q::AccountingPids, Some(_)) => answer
            .iter()
            .flat_map(|pids| pids.numbers().iter().rev().take(ACCOUNTED))
            .filter_map(|pid| u32::try_from(*pid).ok())
            .map(|pid| call(Lane::Slow, Reader::Model, Q::AccountingStats(pid)))
            .collect(),
        (Q::NumFans, Some(fans)) => (0..u32::try_from(fans)
            .ok()
            .filter(|fans| *fans <= MOST_FANS)
            .unwrap_or(0))
            .flat_map(|fan| [Q::FanSpeedOf(fan), Q::FanSpeedRpm(fan)])
            .map(|query| call(Lane::Slow, Reader::Model, query))
            .collect(),
        // The links are counted by asking for one after the other.
        (Q::NvLinkState(link), Some(_)) => {
            let next = link.saturating_add(1);
            let next = (next < MOST_LINKS).then_some(call(
                Lane::Slow,
                Reader::Model,
                Q::NvLinkState(next),
            ));
            let about = [
                Q::NvLinkVersion(link),
                Q::NvLinkRemoteDeviceType(link),
                Q::NvLinkRemoteBusId(link),
                link_speed(link),
            ];
            about
                .map(|query| call(Lane::Once, Reader::Model, query))
                .into_iter()
                .chain(
                    link_counters(link)
                        .map(|query| call(Lane::Slower(LINK_COUNTERS_EVERY), Reader::Model, query)),
                )
                .chain(next)
                .collect()
        }
        // The clocks that go with each memory clock.
        (Q::SupportedMemoryClocks, Some(_)) => answer
            .iter()
            .flat_map(Value::numbers)
            .filter_map(|mhz| u32::try_from(*mhz).ok())
            .map(|mhz| call(Lane::Once, Reader::Smi, Q::SupportedGraphicsClocks(mhz)))
            .collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::nvml::query::Code;

    #[test]
    fn nothing_is_asked_twice() {
        let mut all: Vec<_> = CALLS.iter().map(|call| call.query).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn links_are_asked_about_one_after_the_other_until_there_is_none() {
        let raised = |link, answer| {
            follow_up_calls(Q::NvLinkState(link), &answer)
                .iter()
                .map(|call| call.query)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            raised(0, Ok(Value::number(1))).last(),
            Some(&Q::NvLinkState(1))
        );
        assert!(
            !raised(MOST_LINKS - 1, Ok(Value::number(1))).contains(&Q::NvLinkState(MOST_LINKS))
        );
        assert_eq!(raised(4, Err(Code::INVALID_ARGUMENT)), []);
    }
}
