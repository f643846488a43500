//! When a collector makes each call by itself.
//!
//! A query without a lane is only asked if somebody needs the answer, such as nvidia-smi's output.

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
    /// With samples, but no more often than this, and in no single look: it costs more than all of
    /// the tick's together. While nobody watches, with the last sample of each step of history.
    Paced(Duration),
    /// Once for each opening of the GPU, with the first details.
    Once,
    /// With the details. While nobody watches, what is dear no more often than [`UNWATCHED_EVERY`].
    Slow,
    /// With the details, but no more often than this, and more rarely by as much while nobody
    /// watches.
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
    fn new(query: Q, (lane, reader): (Lane, Reader), cost_us: u32) -> Self {
        Self {
            query,
            lane,
            reader,
            cost_us,
        }
    }

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

pub(in crate::vendor) const MEMORY_CELSIUS: Q = Q::Field(NVML_FI_DEV_MEMORY_TEMP, 0);
pub(in crate::vendor) const POWER_INSTANT: Q = Q::Field(NVML_FI_DEV_POWER_INSTANT, 0);
pub(in crate::vendor) const POWER_AVERAGE: Q = Q::Field(NVML_FI_DEV_POWER_AVERAGE, 0);
pub(in crate::vendor) const RECOVERY_ACTION: Q = Q::Field(NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, 0);

/// The fields of a tick. All fields are one call: one that costs more would delay the others.
const TICK_FIELDS: [u32; 3] = [
    NVML_FI_DEV_MEMORY_TEMP,
    NVML_FI_DEV_POWER_INSTANT,
    NVML_FI_DEV_POWER_AVERAGE,
];

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

/// What all links together sent and received, in KiB. Not in the table: where there is GPM, nobody
/// needs it.
pub(super) const ALL_LINKS: [Q; 2] = [
    Q::Field(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, u32::MAX),
    Q::Field(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, u32::MAX),
];

/// The counter of energy moves every 100 ms, and asking costs 3 ms, more than all of a tick.
/// The margin follows the chip's temperature, and asking costs 1.2 ms.
const PACED_EVERY: Duration = Duration::from_secs(5);

/// The counters of 18 links cost 32 ms.
const LINK_COUNTERS_EVERY: Duration = Duration::from_mins(1);

/// The details that cost as much or more take 12 ms together, all others 0.6 ms. No condition is
/// found by the former.
const DEAR_US: u32 = 100;

/// Less than a minute, after which a reading counts as old: some of them tell what a condition is
/// beside.
const UNWATCHED_EVERY: Duration = Duration::from_secs(50);

/// As many times more rarely as those.
const UNWATCHED_FACTOR: u32 = 5;

/// No GPU has more links.
pub(super) const MOST_LINKS: u32 = NVML_NVLINK_MAX_LINKS;

/// No board has more fans.
pub(super) const MOST_FANS: u32 = 64;

/// `nvmlMemoryLocation_t`.
pub(super) const MEMORY_LOCATIONS: std::ops::Range<u32> = 0..8;

/// `NVML_POWER_SCOPE_MODULE`, `NVML_POWER_SCOPE_MEMORY`.
const POWER_SCOPES: [u32; 2] = [1, 2];

/// So many of the processes that the driver accounts for are asked about.
pub(super) const ACCOUNTED: usize = 64;

/// The lane and the reader of an attribute of the table.
macro_rules! lane {
    (tick) => {
        (Lane::Tick, Reader::Model)
    };
    (paced) => {
        (Lane::Paced(PACED_EVERY), Reader::Model)
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
        /// The calls that a collector makes by itself, by lane.
        pub(super) static CALLS: LazyLock<Vec<Call>> = LazyLock::new(|| {
            let mut calls = Vec::with_capacity(512);
            $(attributes! {
                calls $query ($($($argument),+)?)
                $(, $attribute $($cost)? $(for $each)?)*
            })*
            calls
        });

        /// Returns `true` if the answer stays the same for as long as the process lives.
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
        #[allow(unused_parens, reason = "it may be one argument or several")]
        $calls.extend($each.into_iter().map(|($($argument),+)| {
            Call::new(Q::$query($($argument),+), lane!($lane), $cost)
        }));
    };
}

crate::nvml_queries! { read_table }

/// Returns each of the first with each of the others.
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

/// Whether a collector's answer serves other programs, too: what the table has. What an answer
/// raised, such as the counters of links, may be older than a tool's user expects.
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

pub(super) fn follow_up_calls(query: Q, answer: &Answer) -> Vec<Call> {
    let call = |lane, reader, query| Call::new(query, (lane, reader), 0);
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
