//! How all GPUs are now.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// How all GPUs of a fleet are now: the answer of `/api/v1/fleet`, and of `/api/v1/fleet/node` for
/// one node alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
pub struct Fleet {
    /// When this was read, in milliseconds since 1970.
    pub at_ms: u64,
    /// Where it was read.
    pub source: FleetSource,
    /// Whether it is what there is now.
    pub state: FleetState,
    /// What is wrong with the source, each in a sentence with its cure; empty where nothing is.
    pub problems: Vec<String>,
    /// In how many seconds there is something new.
    pub refresh_s: u32,
    /// What a place in [`Self::gpus`] stands for.
    pub resolution: Resolution,
    /// The nodes, by name.
    pub nodes: FleetNodes,
    /// The GPUs, by node and index.
    pub gpus: FleetGpus,
    /// Who holds a GPU now.
    pub owners: Vec<FleetOwner>,
    /// Which GPU is held by whom. A GPU that several hold is there several times.
    pub holds: Vec<FleetHold>,
    /// What currently is wrong with GPUs.
    pub conditions: Vec<FleetCondition>,
    /// The states and readings of each node's GPUs together, in the order of the nodes.
    #[serde(default)]
    pub sums: FleetSums,
    /// The states and readings of all GPUs together, in columns with one place.
    #[serde(default)]
    pub totals: FleetSums,
    /// Why no GPU has a reading, by the id of its field, or `processes`, `owners`, `conditions`.
    pub missing: BTreeMap<String, String>,
}

impl Fleet {
    /// One of which nothing has been read yet.
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

/// Where a fleet is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetSource {
    /// What it is.
    pub kind: FleetSourceKind,
    /// Its address without credentials, or how many hosts.
    pub name: String,
}

/// What a fleet is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "snake_case")]
pub enum FleetSourceKind {
    /// Prometheus, or what has its HTTP API.
    Prometheus,
    /// Hosts, over ssh.
    Hosts,
}

/// Whether a fleet is what there is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "snake_case")]
pub enum FleetState {
    /// Nothing has been read yet.
    Loading,
    /// All of it.
    Current,
    /// Something could not be read; the rest is of now.
    Partial,
    /// Nothing could be read lately; this is how it was at `at_ms`.
    Outdated,
}

/// What one place of the columns stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// A GPU.
    Gpu,
    /// A node, whose readings are averages of its GPUs, or sums of bytes and watts: there are too
    /// many GPUs to list.
    Node,
}

/// The nodes of a fleet, in columns of the same length.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetNodes {
    /// What they are called: the host of Prometheus' label `instance`, with its port where a host
    /// has several.
    pub name: Vec<String>,
    /// How they are.
    pub health: Vec<NodeHealth>,
    /// Why a node is not `up`, by its place.
    pub reasons: BTreeMap<u32, String>,
    /// How many GPUs each has, also where they are not listed.
    pub gpus: Vec<u32>,
    /// Whether all there is of a node can be shown, at `nodes/NAME/`; why not otherwise.
    pub unopenable: BTreeMap<u32, String>,
}

/// How a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "snake_case")]
pub enum NodeHealth {
    /// It answers.
    Up,
    /// It does not.
    Unreachable,
    /// It answers, and has no readings: its driver hangs, or there is none.
    NoReadings,
}

/// The GPUs of a fleet, in columns of the same length; or its nodes, by [`Resolution`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetGpus {
    /// The place of its node in [`Fleet::nodes`].
    pub node: Vec<u32>,
    /// NVML's index; 0 for nodes.
    pub index: Vec<u32>,
    /// The place of its name in `names`; `null` where it is not told.
    pub model: Vec<Option<u32>>,
    /// Names of GPUs, as "NVIDIA H200".
    pub models: Vec<String>,
    /// How they are.
    pub health: Vec<GpuHealth>,
    /// Readings by the ids of their fields: `utilization.gpu_percent`, `memory.used_bytes`,
    /// `memory.total_bytes`, `power.draw_watts`, `power.limit_watts`, `temperature.gpu_celsius`. A
    /// reading that nothing tells is `null`.
    pub readings: BTreeMap<String, Vec<Option<f64>>>,
    /// How many processes are on each; `null` where it is not told.
    pub processes: Vec<Option<u32>>,
    /// For how many seconds each has been idle while memory of it is held; `null` where it is not.
    pub idle_holding_s: Vec<Option<f64>>,
    /// The state of each.
    #[serde(default)]
    pub state: Vec<GpuState>,
    /// How urgent each is, from 0 for a lost GPU to 6 for a GPU without problems.
    #[serde(default)]
    pub rank: Vec<u8>,
    /// The places of the nodes of GPUs that are not in the columns, because nothing is known about
    /// them: as many as a node last had, or one if that is unknown.
    #[serde(default)]
    pub unlisted: Vec<u32>,
}

/// The states and readings of several GPUs together, in columns of the same length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetSums {
    /// How many GPUs there are.
    pub gpus: Vec<u32>,
    /// How many GPUs are in each state.
    pub states: BTreeMap<GpuState, Vec<u32>>,
    /// The rank of the worst GPU.
    pub rank: Vec<u8>,
    /// The mean utilization, the highest temperature, and the sums of the other readings, by the
    /// ids of their fields, over the GPUs that report them; `null` if no GPU does.
    pub readings: BTreeMap<String, Vec<Option<f64>>>,
    /// How many GPUs report each reading.
    pub reporting: BTreeMap<String, Vec<u32>>,
    /// The longest time that a GPU has been idle while its memory is held, in seconds.
    pub idle_holding_s: Vec<Option<f64>>,
}

/// The state of a GPU.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, TS,
)]
#[serde(rename_all = "snake_case")]
pub enum GpuState {
    /// A busy GPU computes, or somebody holds it.
    Busy,
    /// Somebody holds its memory, and nothing has run on it for minutes.
    Idle,
    /// Nobody holds it.
    Free,
    /// A lost GPU does not respond.
    Lost,
    /// Nothing is known about it.
    Unknown,
}

impl GpuState {
    /// All states.
    pub const ALL: [Self; 5] = [
        Self::Busy,
        Self::Idle,
        Self::Free,
        Self::Lost,
        Self::Unknown,
    ];
}

/// How a GPU is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "snake_case")]
pub enum GpuHealth {
    /// It responds.
    Ok,
    /// It is lost, not responding, or cannot be read.
    NotResponding,
    /// Its node is unreachable.
    Unknown,
}

/// Who holds GPUs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetOwner {
    /// The user, where that is told.
    pub user: Option<String>,
    /// What of theirs it is.
    pub kind: OwnerKind,
    /// Which one: a job's number, a pod's name or UID, a notebook's kernel; empty for a user's
    /// other processes.
    pub id: String,
    /// The namespace of a pod, where that is told.
    pub namespace: Option<String>,
}

/// What holds GPUs.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, TS,
)]
#[serde(rename_all = "snake_case")]
pub enum OwnerKind {
    /// A notebook's kernel.
    Notebook,
    /// A job of Slurm.
    SlurmJob,
    /// A PBS job.
    PbsJob,
    /// An LSF job.
    LsfJob,
    /// A pod of Kubernetes.
    Pod,
    /// A container without a pod.
    Container,
    /// A unit of systemd.
    Unit,
    /// A user's other processes.
    User,
}

/// That somebody holds a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetHold {
    /// The place of the GPU.
    pub gpu: u32,
    /// The place of the owner.
    pub owner: u32,
}

/// Something that is wrong with a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetCondition {
    /// The place of the GPU.
    pub gpu: u32,
    /// What: the name of a condition, as `power_capped`, or `xid_79`.
    pub kind: String,
    /// 1 for a notice, 2 for a warning, 3 if critical.
    pub severity: u8,
}
