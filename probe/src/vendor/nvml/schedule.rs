//! The schedule of a collector's driver calls: which calls it makes regularly, and when each of
//! them is due. Each of these calls belongs to a [`Lane`], which states when calls of this kind are
//! made.
//!
//! Queries without a lane run only on demand, for example for the output of `gpumon smi`.

use std::{
    collections::HashMap,
    sync::LazyLock,
    time::{Duration, Instant},
};

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

use crate::{
    derive::may_be_hung,
    model::GpuSample,
    vendor::{
        ReadDepth,
        nvml::query::{Answer, Query as Q, Value},
    },
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Calls that are made for every sample, including samples of one-shot commands.
    Tick,
    /// Calls that are made for a sample, but at most once in the given period, and never for
    /// samples of one-shot commands. Each of these calls costs more than all `Tick` calls together.
    /// While nobody is watching, they are made only for the last sample of a history step.
    Paced(Duration),
    /// Calls that are made once after the GPU is opened, together with the first details.
    Once,
    /// Calls that are made for the details. While nobody is watching, the expensive ones are made
    /// at most once in 50 seconds.
    Slow,
    /// Calls that are made for the details, but at most once in the given period. While nobody is
    /// watching, the period is [`UNWATCHED_FACTOR`] times longer.
    Slower(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// The answers are used for the model, and also for the output of `gpumon smi`.
    Model,
    /// The answers are used only for the output of `gpumon smi`. This command gets answers from a
    /// running collector if possible. Otherwise, it calls the driver.
    Smi,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) query: Q,
    pub(super) lane: Lane,
    pub(super) reader: Reader,
    /// The cost of the call on an H200, in microseconds, or 0 if the cost depends on the GPU.
    cost_us: u32,
}

impl Call {
    fn new(query: Q, (lane, reader): (Lane, Reader), cost_us: u32) -> Self {
        Self {
            query,
            lane,
            reader,
            cost_us,
        }
    }

    /// Returns the minimum interval between two executions of this call. If it is zero, the call is
    /// made whenever its [`Lane`] is due: for every sample, or for every reading of the details.
    pub(super) fn min_period(&self, is_watched: bool) -> Duration {
        match (self.lane, is_watched) {
            (Lane::Paced(period) | Lane::Slower(period), true) => period,
            (Lane::Slower(period), false) => period.saturating_mul(UNWATCHED_FACTOR),
            (Lane::Slow, false) if self.cost_us >= EXPENSIVE_US => UNWATCHED_INTERVAL,
            (Lane::Paced(_) | Lane::Tick | Lane::Once | Lane::Slow, _) => Duration::ZERO,
        }
    }
}

pub(crate) const MEMORY_CELSIUS: Q = Q::Field(NVML_FI_DEV_MEMORY_TEMP, 0);
pub(crate) const POWER_INSTANT: Q = Q::Field(NVML_FI_DEV_POWER_INSTANT, 0);
pub(crate) const POWER_AVERAGE: Q = Q::Field(NVML_FI_DEV_POWER_AVERAGE, 0);
pub(crate) const RECOVERY_ACTION: Q = Q::Field(NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, 0);

/// The IDs of the fields that are read at every tick. All fields are read with a single call, so
/// one expensive field would delay all others.
const TICK_FIELDS: [u32; 3] = [
    NVML_FI_DEV_MEMORY_TEMP,
    NVML_FI_DEV_POWER_INSTANT,
    NVML_FI_DEV_POWER_AVERAGE,
];

/// Returns the query for the speed of a link in MB per second (`NVML_FI_DEV_NVLINK_GET_SPEED`).
pub(super) const fn link_speed_query(link: u32) -> Q {
    Q::Field(NVML_FI_DEV_NVLINK_GET_SPEED, link)
}

/// Returns the queries for a link's sent and received data in KiB, and for its errors by kind.
/// Together they cost 1.8 ms per link.
pub(super) const fn link_counter_queries(link: u32) -> [Q; 5] {
    [
        Q::Field(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, link),
        Q::Field(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, link),
        Q::Field(NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY, link),
        Q::Field(NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY, link),
        Q::Field(NVML_FI_DEV_NVLINK_ERROR_DL_CRC, link),
    ]
}

/// The queries for the total data sent and received over all links, in KiB. They are not in the
/// table, because only GPUs without GPM need them.
pub(super) const TOTAL_TRAFFIC_QUERIES: [Q; 2] = [
    Q::Field(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, u32::MAX),
    Q::Field(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, u32::MAX),
];

/// The minimum interval between calls for the energy counter and the thermal margin. The counter
/// changes every 100 ms, and reading it costs 3 ms, more than all calls of a tick. The margin
/// changes with the chip's temperature, and reading it costs 1.2 ms.
const PACED_INTERVAL: Duration = Duration::from_secs(5);

/// The interval at which link counters are read. Reading the counters of 18 links costs 32 ms.
const LINK_COUNTER_INTERVAL: Duration = Duration::from_mins(1);

/// A call that costs at least this many microseconds counts as expensive. All expensive calls for
/// details take 12 ms together, and all other calls for details take 0.6 ms. No condition depends
/// on expensive calls alone.
const EXPENSIVE_US: u32 = 100;

/// The interval between expensive calls while nobody is watching. Some conditions use these
/// readings as additional information, but only if they are at most a minute old, so the interval
/// is shorter than a minute.
const UNWATCHED_INTERVAL: Duration = Duration::from_secs(50);

/// While nobody is watching, the period of [`Lane::Slower`] calls is multiplied by this number.
const UNWATCHED_FACTOR: u32 = 5;

/// The maximum number of links. No GPU has more.
pub(super) const MAX_LINKS: u32 = NVML_NVLINK_MAX_LINKS;

/// The maximum number of fans. No board has more.
pub(super) const MAX_FANS: u32 = 64;

/// The values of `nvmlMemoryLocation_t`.
pub(super) const MEMORY_LOCATIONS: std::ops::Range<u32> = 0..8;

/// The values of `NVML_POWER_SCOPE_MODULE` and `NVML_POWER_SCOPE_MEMORY`.
const POWER_SCOPES: [u32; 2] = [1, 2];

/// The maximum number of accounted processes that are queried.
pub(super) const MAX_ACCOUNTED: usize = 64;

/// Returns the lane and reader that a table attribute stands for.
macro_rules! lane {
    (tick) => {
        (Lane::Tick, Reader::Model)
    };
    (paced) => {
        (Lane::Paced(PACED_INTERVAL), Reader::Model)
    };
    (once) => {
        (Lane::Once, Reader::Model)
    };
    (once_smi) => {
        (Lane::Once, Reader::Smi)
    };
    (slow) => {
        (Lane::Slow, Reader::Model)
    };
    (slow_smi) => {
        (Lane::Slow, Reader::Smi)
    };
}

macro_rules! read_table {
    ($(
        $(#[$doc:meta])*
        $query:ident $(($($argument:ident: $kind:ty),+))?
        $(: $($shape:ident $(<$of:ty>)? = $symbol:ident)|+)? $(=> $method:ident)?
        $(, $attribute:ident $($cost:literal)? $(for $each:expr)?)*;
    )*) => {
        /// The calls that a collector makes regularly, with their lanes.
        pub(super) static CALLS: LazyLock<Vec<Call>> = LazyLock::new(|| {
            let mut calls = Vec::with_capacity(512);
            $(attributes! {
                calls $query ($($($argument),+)?)
                $(, $attribute $($cost)? $(for $each)?)*
            })*
            calls
        });

        /// Returns `true` if the answer to `query` never changes while the process runs.
        pub(super) fn is_constant(query: Q) -> bool {
            match query {
                $(Q::$query $(($(any!($argument)),+))? => [$(stringify!($attribute)),*]
                    .contains(&"constant"),)*
            }
        }
    };
}

macro_rules! any {
    ($_:ident) => {
        _
    };
}

macro_rules! attributes {
    (
        $calls:ident $query:ident $arguments:tt
        $(, $attribute:ident $($cost:literal)? $(for $each:expr)?)*
    ) => {
        $(attribute! { $calls $query $arguments $attribute $($cost)? $(for $each)? })*
    };
}

macro_rules! attribute {
    ($calls:ident $query:ident $arguments:tt constant) => {};
    ($calls:ident $query:ident () $lane:ident $cost:literal) => {
        $calls.push(Call::new(Q::$query, lane!($lane), $cost));
    };
    (
        $calls:ident $query:ident ($($argument:ident),+) $lane:ident $cost:literal for $each:expr
    ) => {
        #[allow(unused_parens, reason = "the macro accepts one or several arguments")]
        $calls.extend($each.into_iter().map(|($($argument),+)| {
            Call::new(Q::$query($($argument),+), lane!($lane), $cost)
        }));
    };
}

crate::nvml_queries! { read_table }

/// Returns all pairs of a number from `firsts` and a number from `others`.
fn combine(
    firsts: impl IntoIterator<Item = u32>,
    others: impl IntoIterator<Item = u32> + Clone,
) -> impl Iterator<Item = (u32, u32)> {
    let with_others = move |first| others.clone().into_iter().map(move |other| (first, other));
    firsts.into_iter().flat_map(with_others)
}

fn memory_errors() -> impl Iterator<Item = (u32, u32, u32)> {
    let places = |(kind, counter)| MEMORY_LOCATIONS.map(move |place| (kind, counter, place));
    combine(0..2, 0..2).flat_map(places)
}

/// Returns `true` if other programs may use a collector's answer to `query`. They may use the
/// answers to all queries in the table. The answers to follow-up queries, such as the queries for
/// link counters, are excluded, because they may be older than a tool's user expects.
pub(super) fn is_answer_shared(query: Q) -> bool {
    find_lane(query).is_some()
}

/// Returns `true` if the answer to `query` never changes while the GPU is open.
pub(super) fn is_constant_while_open(query: Q) -> bool {
    find_lane(query) == Some(Lane::Once)
}

/// Returns every query that a collector may answer for other programs, and the query's cost on an
/// H200 in microseconds.
pub fn shared_queries_with_costs() -> impl Iterator<Item = (Q, u32)> {
    let others = IDENTITY_QUERIES
        .map(|query| (query, 5))
        .into_iter()
        .chain([0, 1].map(|way| (Q::PcieThroughput(way), 20_900)));
    CALLS
        .iter()
        .map(|call| (call.query, call.cost_us))
        .chain(others)
}

pub(super) const IDENTITY_QUERIES: [Q; 3] = [Q::Uuid, Q::Name, Q::BusId];

fn find_lane(query: Q) -> Option<Lane> {
    static LANES: LazyLock<HashMap<Q, Lane>> =
        LazyLock::new(|| CALLS.iter().map(|call| (call.query, call.lane)).collect());
    match query {
        Q::Name | Q::Uuid | Q::BusId | Q::SupportedGraphicsClocks(_) => Some(Lane::Once),
        // This call takes 20 ms, so it is not scheduled. Instead, its answer is calculated from the
        // rates that GPM or a separate thread measures.
        Q::PcieThroughput(_) => Some(Lane::Tick),
        query => LANES.get(&query).copied(),
    }
}

pub(super) fn follow_up_calls(query: Q, answer: &Answer) -> Vec<Call> {
    let call = |lane, query| Call::new(query, (lane, Reader::Model), 0);
    let number = answer.as_ref().ok().and_then(|value| value.number_at(0));
    match (query, number) {
        // Drivers before 510 have only the older version of the function.
        (Q::MemoryInfo, None) => vec![call(Lane::Tick, Q::MemoryInfoV1)],
        (Q::AccountingMode, Some(1)) => vec![call(Lane::Slow, Q::AccountingPids)],
        // The driver remembers thousands of processes and lists the oldest first. Each process
        // costs a call, so only the newest are queried.
        (Q::AccountingPids, Some(_)) => answer
            .iter()
            .flat_map(|pids| pids.numbers().iter().rev().take(MAX_ACCOUNTED))
            .filter_map(|pid| u32::try_from(*pid).ok())
            .map(|pid| call(Lane::Slow, Q::AccountingStats(pid)))
            .collect(),
        (Q::NumFans, Some(fans)) => (0..u32::try_from(fans)
            .ok()
            .filter(|fans| *fans <= MAX_FANS)
            .unwrap_or(0))
            .flat_map(|fan| [Q::FanSpeedOf(fan), Q::FanSpeedRpm(fan)])
            .map(|query| call(Lane::Slow, query))
            .collect(),
        // NVML does not report the number of links, so one link after another is queried until a
        // link does not exist.
        (Q::NvLinkState(link), Some(_)) => {
            let next = link.saturating_add(1);
            let next = (next < MAX_LINKS).then_some(call(Lane::Slow, Q::NvLinkState(next)));
            let about = [
                Q::NvLinkVersion(link),
                Q::NvLinkRemoteDeviceType(link),
                Q::NvLinkRemoteBusId(link),
                link_speed_query(link),
            ];
            about
                .map(|query| call(Lane::Once, query))
                .into_iter()
                .chain(
                    link_counter_queries(link)
                        .map(|query| call(Lane::Slower(LINK_COUNTER_INTERVAL), query)),
                )
                .chain(next)
                .collect()
        }
        // The available graphics clocks differ for each memory clock.
        (Q::SupportedMemoryClocks, Some(_)) => answer
            .iter()
            .flat_map(Value::numbers)
            .filter_map(|mhz| u32::try_from(*mhz).ok())
            .map(|mhz| {
                let query = Q::SupportedGraphicsClocks(mhz);
                Call::new(query, (Lane::Once, Reader::Smi), 0)
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// The number of samples for which the counters are read after the GPU has started or stopped
/// working. Several are needed, because the first reading also covers the time before the change,
/// and a process sample remains valid for two seconds.
const READS_AFTER_CHANGE: u32 = 4;

/// A GPU's recent activity. It determines for which samples the hardware counters and process
/// samples are read while nobody is watching.
#[derive(Debug, Default)]
pub(super) struct CounterSchedule {
    was_busy: bool,
    /// The number of samples since the GPU last started or stopped working.
    samples: u32,
}

impl CounterSchedule {
    /// Returns `true` if the counters must be read for `sample`. The fields of `sample` that are
    /// cheap to read must already be set. While nobody is watching, the counters are read only:
    /// - at the end of a history step,
    /// - after the GPU starts or stops working, so that conditions start in time,
    /// - if the GPU may be hung, which only the counters can show,
    /// - if the GPU reports no utilization, as with MIG, so that only the counters show its work.
    pub(super) fn is_due(&mut self, sample: &GpuSample, depth: ReadDepth) -> bool {
        let busy = sample
            .utilization
            .gpu_percent
            .value()
            .map(|percent| *percent > 0.0);
        let is_busy = busy.unwrap_or(false);
        let is_same = std::mem::replace(&mut self.was_busy, is_busy) == is_busy;
        self.samples = if is_same {
            self.samples.saturating_add(1)
        } else {
            1
        };
        match depth {
            ReadDepth::Full => true,
            ReadDepth::OneShot | ReadDepth::Metered => false,
            ReadDepth::Unwatched { closes_step } => {
                closes_step
                    || self.samples <= READS_AFTER_CHANGE
                    || busy.is_none()
                    || may_be_hung(sample)
            }
        }
    }
}

/// A timer with a fixed period, for readings that are too expensive for every sample.
#[derive(Debug)]
pub(super) struct IntervalTimer {
    period: Duration,
    last: Option<Instant>,
}

impl IntervalTimer {
    pub(super) const fn new(period: Duration) -> Self {
        Self { period, last: None }
    }

    /// Returns `true` on the first call and whenever the period has elapsed. A call that comes
    /// slightly too early also returns `true`. Otherwise, the reading would have to wait for the
    /// next call, which could be almost a whole period late.
    pub(super) fn is_due(&mut self) -> bool {
        self.is_due_after(self.period)
    }

    /// Like [`is_due`](Self::is_due), with a different period.
    pub(super) fn is_due_after(&mut self, period: Duration) -> bool {
        let due = self
            .last
            .is_none_or(|last| last.elapsed() >= period.mul_f64(0.9));
        if due {
            self.last = Some(Instant::now());
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::nvml::query::Code;

    #[test]
    fn each_query_is_listed_once() {
        let mut all: Vec<_> = CALLS.iter().map(|call| call.query).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn nvlinks_are_queried_until_one_is_missing() {
        let raised = |link, answer| {
            follow_up_calls(Q::NvLinkState(link), &answer)
                .iter()
                .map(|call| call.query)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            raised(0, Ok(Value::from_number(1))).last(),
            Some(&Q::NvLinkState(1))
        );
        assert!(
            !raised(MAX_LINKS - 1, Ok(Value::from_number(1))).contains(&Q::NvLinkState(MAX_LINKS))
        );
        assert_eq!(raised(4, Err(Code::INVALID_ARGUMENT)), []);
    }
}

#[cfg(test)]
mod need_tests {
    use super::*;
    use crate::{
        derive::examples,
        model::{Absence, Reading},
    };

    const UNWATCHED: ReadDepth = ReadDepth::Unwatched { closes_step: false };

    /// Returns for each sample whether the counters would be read. A sample consists of the GPU
    /// utilization and the memory utilization in percent, and the power draw in watts. The power
    /// limit is 700 W.
    fn find_due_samples(samples: &[(f64, f64, f64)], depth: ReadDepth) -> Vec<bool> {
        let mut need = CounterSchedule::default();
        let read = |(gpu, memory, watts): &(f64, f64, f64)| {
            let mut sample = examples::make_sample(0);
            examples::set_gpu_use(&mut sample, *gpu, 0.0);
            sample.utilization.memory_percent = Reading::Now(*memory);
            sample.power.draw_watts = Reading::Now(*watts);
            sample.power.average_watts = Reading::Absent(Absence::NotSupported);
            sample.power.limit_watts = Reading::Now(700.0);
            need.is_due(&sample, depth)
        };
        samples.iter().map(read).collect()
    }

    #[test]
    fn counters_are_read_when_work_starts_or_ends() {
        let (idle, busy) = ((0.0, 0.0, 120.0), (98.0, 30.0, 600.0));
        let samples = [[idle; 6], [busy; 6], [idle; 6]].concat();
        let expected = [[true; 4].as_slice(), &[false; 2]].concat().repeat(3);
        assert_eq!(find_due_samples(&samples, UNWATCHED), expected);
        assert_eq!(
            find_due_samples(&samples, ReadDepth::Unwatched { closes_step: true }),
            [true; 18]
        );
        assert_eq!(find_due_samples(&samples, ReadDepth::Full), [true; 18]);
        assert_eq!(find_due_samples(&samples, ReadDepth::OneShot), [false; 18]);
    }

    #[test]
    fn suspected_hang_reads_counters_with_every_sample() {
        assert_eq!(
            find_due_samples(&[(100.0, 0.0, 140.0); 9], UNWATCHED),
            [true; 9]
        );
        assert!(
            !find_due_samples(&[(100.0, 0.0, 600.0); 9], UNWATCHED)[8],
            "it draws too much"
        );
    }

    #[test]
    fn missing_utilization_reads_counters_with_every_sample() {
        let mut need = CounterSchedule::default();
        let mut sample = examples::make_sample(0);
        sample.utilization.gpu_percent = Reading::Absent(Absence::NotSupported);
        assert!((0..9).all(|_| need.is_due(&sample, UNWATCHED)));
    }
}

#[cfg(test)]
mod paced_tests {
    use super::*;

    #[test]
    fn call_is_due_slightly_before_its_interval() {
        let mut every = IntervalTimer::new(Duration::from_mins(10));
        assert!(every.is_due());
        assert!(!every.is_due());
        every.last = Some(
            Instant::now()
                .checked_sub(Duration::from_secs(599))
                .unwrap(),
        );
        assert!(every.is_due());
    }
}
