//! The JSON types of a fleet.
//!
//! [`Fleet`] is the current state of all GPUs, [`FleetUsage`] is the usage by owner,
//! [`FleetEvents`] contains problems, and [`FleetHistory`] contains readings of the fleet or one
//! node over time. Per-GPU values are stored in columns of equal length, so that ten thousand GPUs
//! take a few hundred kilobytes.

mod usage;

use std::{cmp::Reverse, collections::BTreeMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

pub(crate) use usage::sort_groups;
pub use usage::{Amounts, FleetUsage, OwnerUsage, UsageGroup, add_amounts, sum_known};

// The types for a fleet's current state.

/// The current state of all GPUs in a fleet: the response of `/api/v1/fleet`, and of
/// `/api/v1/fleet/node` for a single node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
pub struct Fleet {
    /// The time of the readings, in milliseconds since 1970.
    pub at_ms: u64,
    /// The source of the data.
    pub source: FleetSource,
    /// Whether the data is complete and current.
    pub state: FleetState,
    /// Problems with the source, each as a sentence with a remedy; empty if there are none.
    pub problems: Vec<String>,
    /// The time until the next update, in seconds.
    pub refresh_s: u32,
    /// Whether each position in [`Self::gpus`] represents a GPU or a node.
    pub resolution: Resolution,
    /// The nodes, sorted by name.
    pub nodes: FleetNodes,
    /// The GPUs, sorted by node and index.
    pub gpus: FleetGpus,
    /// The owners that currently use GPUs.
    pub owners: Vec<FleetOwner>,
    /// The pairs of a GPU and its owner. A GPU with several owners has several entries.
    pub holds: Vec<FleetHold>,
    /// The conditions that GPUs currently have.
    pub conditions: Vec<FleetCondition>,
    /// The combined states and readings of each node's GPUs, in the order of `nodes`.
    #[serde(default)]
    pub sums: FleetSums,
    /// The combined states and readings of all GPUs, in columns of length one.
    #[serde(default)]
    pub totals: FleetSums,
    /// The reasons why some data is missing for all GPUs, by the id of the reading's field, or by
    /// `processes`, `owners`, or `conditions`.
    pub missing: BTreeMap<String, String>,
}

impl Fleet {
    /// Creates a fleet that has not been read yet.
    pub fn new_unread(source: FleetSource, at_ms: u64, refresh_s: u32) -> Self {
        Self {
            at_ms,
            source,
            state: FleetState::Loading,
            problems: Vec::new(),
            refresh_s,
            resolution: Resolution::Gpu,
            nodes: FleetNodes::default(),
            gpus: FleetGpus::default(),
            owners: Vec::new(),
            holds: Vec::new(),
            conditions: Vec::new(),
            sums: FleetSums::default(),
            totals: FleetSums::default(),
            missing: BTreeMap::new(),
        }
    }
}

/// The source from which a fleet is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetSource {
    /// The kind of the source.
    pub kind: FleetSourceKind,
    /// The address of Prometheus without credentials; for hosts over ssh, the number of hosts.
    pub name: String,
}

/// The kinds of fleet sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "snake_case")]
pub enum FleetSourceKind {
    /// Prometheus, or another server with the same HTTP API.
    Prometheus,
    /// Hosts that are monitored over ssh.
    Hosts,
}

/// Whether the data of a fleet is complete and current.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "snake_case")]
pub enum FleetState {
    /// Nothing has been read yet.
    Loading,
    /// The data is complete and current.
    Current,
    /// Some data could not be read; the rest is current.
    Partial,
    /// Nothing could be read recently; the data is from `at_ms`.
    Outdated,
}

/// The meaning of each position in a fleet's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// Each position represents a GPU.
    Gpu,
    /// Each position represents a node, because there are too many GPUs to list. A node's readings
    /// are averages over its GPUs, or sums for bytes and watts.
    Node,
}

/// The nodes of a fleet, in columns of the same length.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetNodes {
    /// The names of the nodes, taken from the host in Prometheus' label `instance`. A name includes
    /// the port if several nodes have the same host.
    pub name: Vec<String>,
    /// The health of each node.
    pub health: Vec<NodeHealth>,
    /// The reasons why nodes are not `up`, by the node's position.
    pub reasons: BTreeMap<u32, String>,
    /// The number of GPUs in each node, including unlisted GPUs.
    pub gpus: Vec<u32>,
    /// The reasons why some nodes' pages at `nodes/NAME/` cannot be opened, by the node's position.
    /// All other nodes can be opened.
    pub unopenable: BTreeMap<u32, String>,
}

/// The health of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "snake_case")]
pub enum NodeHealth {
    /// The node responds and has readings.
    Up,
    /// The node does not respond.
    Unreachable,
    /// The node responds but has no readings, because its driver hangs or is missing.
    NoReadings,
}

/// Columns of equal length, with one entry for each GPU or each node, depending on [`Resolution`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetGpus {
    /// The position of each GPU's node in [`Fleet::nodes`].
    pub node: Vec<u32>,
    /// The NVML index of each GPU; 0 for nodes.
    pub index: Vec<u32>,
    /// The position of each GPU's model name in `models`; `null` if it is unknown.
    pub model: Vec<Option<u32>>,
    /// The names of GPU models, such as "NVIDIA H200".
    pub models: Vec<String>,
    /// The health of each GPU.
    pub health: Vec<GpuHealth>,
    /// Readings by the ids of their fields: `utilization.gpu_percent`, `memory.used_bytes`,
    /// `memory.total_bytes`, `power.draw_watts`, `power.limit_watts`, `temperature.gpu_celsius`.
    /// Unknown readings are `null`.
    pub readings: BTreeMap<String, Vec<Option<f64>>>,
    /// The number of processes on each GPU; `null` if unknown.
    pub processes: Vec<Option<u32>>,
    /// How long each GPU has been idle although its memory is in use, in seconds; `null` if it is
    /// not.
    pub idle_holding_s: Vec<Option<f64>>,
    /// The state of each GPU.
    #[serde(default)]
    pub state: Vec<GpuState>,
    /// The urgency of each GPU's state, from 0 for a lost GPU to 6 for a GPU without problems.
    #[serde(default)]
    pub rank: Vec<u8>,
    /// The node positions of GPUs that are not in the columns because nothing is known about them.
    /// A node is repeated once for each GPU it last had, or appears once if that number is unknown.
    #[serde(default)]
    pub unlisted: Vec<u32>,
}

/// The combined states and readings of several GPUs, in columns of the same length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetSums {
    /// The total number of GPUs.
    pub gpus: Vec<u32>,
    /// The number of GPUs in each state.
    pub states: BTreeMap<GpuState, Vec<u32>>,
    /// The rank of the GPU with the most urgent state.
    pub rank: Vec<u8>,
    /// The mean utilization, the highest temperature, and the sums of all other readings, by field
    /// id. GPUs that do not report a reading are left out; the value is `null` if no GPU reports
    /// it.
    pub readings: BTreeMap<String, Vec<Option<f64>>>,
    /// The number of GPUs that report each reading.
    pub reporting: BTreeMap<String, Vec<u32>>,
    /// The longest time that any of the GPUs has been idle although its memory is in use, in
    /// seconds.
    pub idle_holding_s: Vec<Option<f64>>,
}

/// The state of a GPU.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, TS,
)]
#[serde(rename_all = "snake_case")]
pub enum GpuState {
    /// The GPU is computing, or an owner uses it.
    Busy,
    /// An owner uses the GPU's memory, but no kernel has run for minutes.
    Idle,
    /// No owner uses the GPU.
    Free,
    /// The GPU does not respond.
    Lost,
    /// Nothing is known about the GPU.
    Unknown,
}

impl GpuState {
    pub const ALL: [Self; 5] = [
        Self::Busy,
        Self::Idle,
        Self::Free,
        Self::Lost,
        Self::Unknown,
    ];
}

/// The health of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "snake_case")]
pub enum GpuHealth {
    /// The GPU responds to requests.
    Ok,
    /// The GPU is lost, does not respond, or cannot be read.
    NotResponding,
    /// The GPU's node is unreachable.
    Unknown,
}

/// An owner of GPUs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetOwner {
    /// The user name, if it is known.
    pub user: Option<String>,
    /// The kind of the owner.
    pub kind: OwnerKind,
    /// The owner's id: a job's number, a pod's name or UID, or a notebook's kernel; empty for a
    /// user's other processes.
    pub id: String,
    /// The pod's namespace, if known.
    pub namespace: Option<String>,
}

/// The kinds of owners.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, TS,
)]
#[serde(rename_all = "snake_case")]
pub enum OwnerKind {
    /// A Jupyter notebook's kernel.
    Notebook,
    /// A batch job in Slurm.
    SlurmJob,
    /// A batch job in PBS.
    PbsJob,
    /// A batch job in LSF.
    LsfJob,
    /// A pod in a Kubernetes cluster.
    Pod,
    /// A container that belongs to no pod.
    Container,
    /// A systemd unit, such as a service.
    Unit,
    /// A user's other processes.
    User,
}

/// A pair of a GPU and an owner that uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetHold {
    /// The GPU's position in the fleet.
    pub gpu: u32,
    /// The owner's position in the fleet.
    pub owner: u32,
}

/// A condition on one GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetCondition {
    /// The GPU's position in the fleet.
    pub gpu: u32,
    /// The name of the condition, such as `power_capped` or `xid_79`.
    pub kind: String,
    /// The severity: 1 for a notice, 2 for a warning, 3 for a critical condition.
    pub severity: u8,
}

// The GPU readings that a fleet shows, by field id.

/// The utilization in percent; for several GPUs, the mean.
pub const UTILIZATION: &str = "utilization.gpu_percent";
/// The memory in use, in bytes.
pub const MEMORY_USED: &str = "memory.used_bytes";
/// The total memory, in bytes.
pub const MEMORY_TOTAL: &str = "memory.total_bytes";
/// The power draw, in watts.
pub const POWER: &str = "power.draw_watts";
/// The power limit, in watts.
pub const POWER_LIMIT: &str = "power.limit_watts";
/// The temperature in degrees Celsius; for several GPUs, the highest.
pub const TEMPERATURE: &str = "temperature.gpu_celsius";

pub const READINGS: [&str; 6] = [
    UTILIZATION,
    MEMORY_USED,
    MEMORY_TOTAL,
    POWER,
    POWER_LIMIT,
    TEMPERATURE,
];

/// The memory use, in bytes, above which a GPU counts as used if its processes are unknown. The
/// driver itself uses less memory.
pub const HELD_BYTES: f64 = (1_u64 << 30) as f64;

/// Returns `true` if `value` is possible for a GPU or for all GPUs of a node. Exporters can report
/// any number.
pub fn is_plausible_reading(id: &str, value: f64) -> bool {
    match id {
        UTILIZATION => (0.0..=100.0).contains(&value),
        TEMPERATURE => (-50.0..=300.0).contains(&value),
        POWER | POWER_LIMIT => (0.0..=1e7).contains(&value),
        _ if id.starts_with("memory.") => (0.0..=1e16).contains(&value),
        _ => true,
    }
}

// The types for a fleet's or a node's readings over time.

/// Readings over time: the response of `/api/v1/fleet/history`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetHistory {
    /// The name of the node, or `null` for all nodes.
    pub node: Option<String>,
    /// Whether all data could be read.
    pub state: FleetState,
    /// Problems with the source, each as a sentence with a remedy.
    pub problems: Vec<String>,
    /// The times of the values, in milliseconds since 1970, at equal intervals.
    pub at_ms: Vec<u64>,
    /// The readings, as one series each.
    pub series: Vec<FleetSeries>,
}

/// One reading over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetSeries {
    /// The averaged reading `utilization.gpu_percent`, or one of the sums `memory.used_bytes`,
    /// `memory.total_bytes`, `power.draw_watts`, `gpus`, `gpus_held`. For hosts over ssh,
    /// `gpus_held` counts GPUs that had load or more than 1 GiB of memory in use.
    pub id: String,
    /// One value for each time in `at_ms`; `null` if there is none.
    pub values: Vec<Option<f64>>,
}

// The types of a fleet's events.

/// Xids and lost GPUs in a time range: the response of `/api/v1/fleet/events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetEvents {
    /// Start of the time range, in milliseconds since 1970.
    pub from_ms: u64,
    /// End of the time range, in milliseconds since 1970.
    pub to_ms: u64,
    /// Whether all data could be read.
    pub state: FleetState,
    /// Problems with the source, each as a sentence with a remedy.
    pub problems: Vec<String>,
    /// The events: ongoing problems first, then the most recent.
    pub events: Vec<FleetEvent>,
    /// The total number of events, including those not listed.
    pub events_total: u32,
}

/// The maximum number of events in a response.
const MAX_EVENTS: usize = 1000;

impl FleetEvents {
    /// Creates the response that is used until data has been read for a time range.
    pub fn new_loading(from_ms: u64, to_ms: u64) -> Self {
        Self {
            from_ms,
            to_ms,
            state: FleetState::Loading,
            problems: Vec::new(),
            events: Vec::new(),
            events_total: 0,
        }
    }

    /// Sets the events, sorted with ongoing problems first and then the most recent. Events beyond
    /// the maximum number are dropped.
    pub fn set_events(&mut self, mut events: Vec<FleetEvent>) {
        events.sort_by_key(|event| Reverse((event.lasts, event.last_ms)));
        self.events_total = events.len() as u32;
        events.truncate(MAX_EVENTS);
        self.events = events;
    }
}

/// A problem with a GPU or a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetEvent {
    /// The name of the node.
    pub node: String,
    /// The GPU's NVML index; `null` for a problem with the node.
    pub gpu: Option<u32>,
    /// The kind of the event.
    pub kind: FleetEventKind,
    /// The Xid's number; `null` for other kinds.
    pub xid: Option<u32>,
    /// The number of occurrences in the time range.
    pub count: u32,
    /// The time of the last occurrence, in milliseconds since 1970, with the resolution of the
    /// query.
    pub last_ms: u64,
    /// Whether the problem is ongoing.
    pub lasts: bool,
}

/// The kinds of fleet events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "snake_case")]
pub enum FleetEventKind {
    /// The driver reported an Xid.
    Xid,
    /// A GPU was lost, or did not respond.
    GpuNotResponding,
    /// The node did not respond.
    NodeUnreachable,
}
