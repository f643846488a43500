//! The current state of a fleet.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// The current state of all GPUs of a fleet: the answer of `/api/v1/fleet`, and of
/// `/api/v1/fleet/node` for a single node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
pub struct Fleet {
    /// The time of the reading, in milliseconds since 1970.
    pub at_ms: u64,
    /// The source of the data.
    pub source: FleetSource,
    /// Whether the data is complete and current.
    pub state: FleetState,
    /// Problems with the source, each as a sentence with a remedy; empty if there are none.
    pub problems: Vec<String>,
    /// The time until the next update, in seconds.
    pub refresh_s: u32,
    /// Whether positions in [`Self::gpus`] are GPUs or nodes.
    pub resolution: Resolution,
    /// The nodes in order of their names.
    pub nodes: FleetNodes,
    /// The GPUs, in order of their nodes and indexes.
    pub gpus: FleetGpus,
    /// The current owners of GPUs.
    pub owners: Vec<FleetOwner>,
    /// The pairs of a GPU and its owner. A GPU with several owners has several entries.
    pub holds: Vec<FleetHold>,
    /// The current conditions of GPUs.
    pub conditions: Vec<FleetCondition>,
    /// The combined states and readings of each node's GPUs, in the order of the nodes.
    #[serde(default)]
    pub sums: FleetSums,
    /// The combined states and readings of all GPUs, in columns with one entry.
    #[serde(default)]
    pub totals: FleetSums,
    /// The reasons why no GPU has a reading, by the id of its field, or `processes`, `owners`,
    /// `conditions`.
    pub missing: BTreeMap<String, String>,
}

impl Fleet {
    /// Returns a fleet that has not been read yet.
    pub fn unread(source: FleetSource, at_ms: u64, refresh_s: u32) -> Self {
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
    /// The address of Prometheus without credentials, or the number of hosts.
    pub name: String,
}

/// The kinds of fleet sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "snake_case")]
pub enum FleetSourceKind {
    /// Prometheus, or another server with its HTTP API.
    Prometheus,
    /// Hosts that are read over ssh.
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

/// The meaning of one position in the columns of a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// Each position is a GPU.
    Gpu,
    /// Each position is a node, because there are too many GPUs to list. Its readings are averages
    /// over its GPUs, or sums of bytes and watts.
    Node,
}

/// The nodes of a fleet, in columns of the same length.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetNodes {
    /// The names of the nodes: the host of Prometheus' label `instance`, with the port if a host
    /// has several nodes.
    pub name: Vec<String>,
    /// The health of each node.
    pub health: Vec<NodeHealth>,
    /// The reasons why nodes are not `up`, by position.
    pub reasons: BTreeMap<u32, String>,
    /// The number of GPUs of each node, even if they are not listed.
    pub gpus: Vec<u32>,
    /// The reasons why nodes cannot be opened at `nodes/NAME/`, by position. All other nodes can be
    /// opened.
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

/// The GPUs of a fleet, or its nodes, depending on [`Resolution`], in columns of the same length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetGpus {
    /// The position of each GPU's node in [`Fleet::nodes`].
    pub node: Vec<u32>,
    /// NVML's index of each GPU; 0 for nodes.
    pub index: Vec<u32>,
    /// The position of each GPU's name in `models`; `null` if it is unknown.
    pub model: Vec<Option<u32>>,
    /// The names of GPU models, such as "NVIDIA H200".
    pub models: Vec<String>,
    /// The health of each GPU.
    pub health: Vec<GpuHealth>,
    /// Readings by the ids of their fields: `utilization.gpu_percent`, `memory.used_bytes`,
    /// `memory.total_bytes`, `power.draw_watts`, `power.limit_watts`, `temperature.gpu_celsius`.
    /// Unknown readings are `null`.
    pub readings: BTreeMap<String, Vec<Option<f64>>>,
    /// The number of processes on each GPU; `null` if it is unknown.
    pub processes: Vec<Option<u32>>,
    /// The time for which each GPU has been idle although its memory is in use, in seconds;
    /// otherwise `null`.
    pub idle_holding_s: Vec<Option<f64>>,
    /// The state of each GPU.
    #[serde(default)]
    pub state: Vec<GpuState>,
    /// The urgency of each GPU's state, from 0 for a lost GPU to 6 for a GPU without problems.
    #[serde(default)]
    pub rank: Vec<u8>,
    /// The positions of the nodes of GPUs that are not in the columns, because nothing is known
    /// about them. A node has as many entries as it last had GPUs, or one if that is unknown.
    #[serde(default)]
    pub unlisted: Vec<u32>,
}

/// The combined states and readings of several GPUs, in columns of the same length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetSums {
    /// The number of GPUs in all.
    pub gpus: Vec<u32>,
    /// The number of GPUs in each state.
    pub states: BTreeMap<GpuState, Vec<u32>>,
    /// The rank of the worst GPU.
    pub rank: Vec<u8>,
    /// The mean utilization, the highest temperature, and the sums of the other readings, by the
    /// ids of their fields, over the GPUs that report them; `null` if no GPU does.
    pub readings: BTreeMap<String, Vec<Option<f64>>>,
    /// The number of GPUs that report each reading.
    pub reporting: BTreeMap<String, Vec<u32>>,
    /// The longest time for which a GPU has been idle although its memory is in use, in seconds.
    pub idle_holding_s: Vec<Option<f64>>,
}

/// The state of a GPU.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, TS,
)]
#[serde(rename_all = "snake_case")]
pub enum GpuState {
    /// The GPU computes, or an owner uses it.
    Busy,
    /// An owner uses the GPU's memory, but nothing has run on it for minutes.
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
    /// The node of the GPU is unreachable.
    Unknown,
}

/// An owner of GPUs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetOwner {
    /// The user name, if it is known.
    pub user: Option<String>,
    /// The kind of the owner.
    pub kind: OwnerKind,
    /// The id of the owner: a job's number, a pod's name or UID, or a notebook's kernel; empty for
    /// a user's other processes.
    pub id: String,
    /// The namespace of a pod, if known.
    pub namespace: Option<String>,
}

/// The kinds of owners.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, TS,
)]
#[serde(rename_all = "snake_case")]
pub enum OwnerKind {
    /// The kernel of a notebook.
    Notebook,
    /// A job of Slurm.
    SlurmJob,
    /// A job of PBS.
    PbsJob,
    /// A job of LSF.
    LsfJob,
    /// A pod of Kubernetes.
    Pod,
    /// A container that belongs to no pod.
    Container,
    /// A unit of systemd.
    Unit,
    /// Other processes of a user.
    User,
}

/// A pair of a GPU and an owner that uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetHold {
    /// The position of the GPU.
    pub gpu: u32,
    /// The position of the owner.
    pub owner: u32,
}

/// A condition of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetCondition {
    /// The position of the GPU.
    pub gpu: u32,
    /// The name of the condition, such as `power_capped` or `xid_79`.
    pub kind: String,
    /// 1 for a notice, 2 for a warning, 3 if critical.
    pub severity: u8,
}
