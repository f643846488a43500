//! What travels over `/api/v1/stream`, in both directions, and `/api/v1/snapshot`.
//!
//! Inventory, sample and event frames are the collector's own lines, byte for byte.

use std::{collections::BTreeMap, ops::RangeInclusive};

use gpumon_probe::{
    model::{
        EnergyPrice, Event, FiringAlert, GpuDetails, Inventory, Object, Process, Sample, Trace,
        type_of,
    },
    tagged,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::runs::state::RunState;

/// The times between samples that may be asked for, in milliseconds.
pub const INTERVAL_MS: RangeInclusive<u32> = 100..=60_000;

/// From the server to a client, told apart by `type`.
// One of them exists at a time, so that the size of the largest does not matter.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq, Serialize, TS, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerFrame {
    /// The first frame of every connection.
    Hello(Hello),
    /// What is there, whenever it has changed.
    Inventory(Inventory),
    /// What was read at one moment.
    Sample(Sample),
    /// What changes slowly about one GPU, every ten seconds.
    Details(GpuDetails),
    /// What the driver itself recorded of one GPU between two samples; only for a client that asked
    /// for traces.
    Trace(Trace),
    /// What happened.
    Event(Event),
    /// Which alerts fire now, whenever that has changed.
    Alerts {
        /// The worst first.
        firing: Vec<FiringAlert>,
    },
    /// The collector's state has changed.
    Collector(CollectorStatus),
    /// What was missed during a pause, or what was asked for.
    History(History),
    /// A run of the workload runner has changed; only for a client that asked for runs.
    Run(RunState),
    /// The client was too slow for this many samples or events, which it will not get.
    Lagged {
        /// How many.
        missed: u64,
    },
    /// Sent behind the hello, whose clock may be a little old, and when nothing else was for a few
    /// seconds, so that a client can tell a quiet server from a dead one.
    Heartbeat {
        /// The server's clock.
        at_ms: u64,
    },
    /// A client frame could not be understood. The connection goes on.
    Error {
        /// What was wrong with it, and what would have been right.
        message: String,
    },
}

impl ServerFrame {
    /// Decodes a frame of those that say something of GPUs and of what reads them; `None` is one of
    /// the others, or of a newer server's.
    ///
    /// # Errors
    /// Where the text is not a frame.
    pub fn decode(text: &str) -> Result<Option<Self>, serde_json::Error> {
        Ok(Some(match &*type_of(text)? {
            "hello" => Self::Hello(serde_json::from_str(text)?),
            "inventory" => Self::Inventory(serde_json::from_str(text)?),
            "sample" => Self::Sample(serde_json::from_str(text)?),
            "details" => Self::Details(serde_json::from_str(text)?),
            "event" => Self::Event(serde_json::from_str(text)?),
            "alerts" => Self::Alerts {
                firing: Object::parse(text)?.take("firing")?,
            },
            "collector" => Self::Collector(serde_json::from_str(text)?),
            "history" => Self::History(serde_json::from_str(text)?),
            _ => return Ok(None),
        }))
    }
}

/// From a client to the server, told apart by `type`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ClientFrame {
    /// Send no samples until `resume`: nobody is looking. Events and states still come.
    Pause {},
    /// Send samples again, after a history frame.
    Resume {},
    /// Send no more than one sample per this time. The GPUs are read as often as the most demanding
    /// client asks for. Without this frame, samples come at the server's own interval, every second
    /// unless it was told otherwise.
    Interval {
        /// Milliseconds, 100 to 60000.
        ms: u32,
    },
    /// Send `trace` frames, too, or no more of them. None come during a pause.
    Traces {
        /// Whether to.
        on: bool,
    },
    /// Whether somebody looks at what comes, as is taken for granted without this frame. While
    /// nobody does, here or at another client, what costs the driver much time is read every ten
    /// seconds: hardware counters, rates, energy.
    Watching {
        /// Whether somebody does.
        on: bool,
    },
    /// Send a `run` frame for each run that is known, and whenever one has changed, or no more of
    /// them. During a pause none come; what has changed meanwhile comes after it.
    Runs {
        /// Whether to.
        on: bool,
    },
    /// Send the history of these metrics, at once and after each pause. Without this frame, history
    /// is of what an overview shows. An unknown metric is skipped, and told in an error frame
    /// before the history.
    History {
        /// Their names in the catalogue, as `pcie.tx_bytes_per_second` and `host.cpu.busy_percent`;
        /// those of MIG devices with `mig.` before them, as `mig.memory.used_bytes`;
        /// `processes.memory_bytes` for who held the memory.
        metrics: Vec<String>,
    },
}

tagged!(ClientFrame by "type" strict {
    "pause" => Pause {},
    "resume" => Resume {},
    "interval" => Interval { ms },
    "traces" => Traces { on },
    "watching" => Watching { on },
    "runs" => Runs { on },
    "history" => History { metrics },
});

/// All a client needs to draw at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Hello {
    /// gpumon's version, as `0.1.0`.
    pub version: String,
    /// The server's clock, so that a client whose clock differs can place "now".
    pub at_ms: u64,
    /// Whether samples are coming.
    pub collector: CollectorStatus,
    /// What is there; `None` until the collector has told it.
    pub inventory: Option<Inventory>,
    /// The newest sample; `None` until there is one.
    pub sample: Option<Sample>,
    /// What changes slowly, of each GPU of which it has been read.
    pub details: Vec<GpuDetails>,
    /// What happened lately, the oldest first.
    pub events: Vec<Event>,
    /// Which alerts fire now, the worst first; left out where none does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<FiringAlert>>", optional)]
    pub alerts: Vec<FiringAlert>,
    /// The recent past.
    pub history: History,
    /// Whether this server tells of a fleet, at `/api/v1/fleet`; left out where it does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[ts(as = "Option<bool>", optional)]
    pub fleet: bool,
    /// The price by which energy has costs; left out if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub energy_price: Option<EnergyPrice>,
}

/// `/api/v1/snapshot`, and `gpumon --json`: everything known at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Snapshot {
    /// gpumon's version, as `0.1.0`.
    pub version: String,
    /// Whether samples are coming.
    pub collector: CollectorStatus,
    /// What is there; `None` until the collector has told it.
    pub inventory: Option<Inventory>,
    /// The newest sample; `None` until there is one.
    pub sample: Option<Sample>,
    /// What changes slowly, of each GPU of which it has been read.
    pub details: Vec<GpuDetails>,
    /// What happened lately, the oldest first; empty where there is no server that could remember.
    pub events: Vec<Event>,
    /// Which alerts fire now, the worst first; left out where none does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<FiringAlert>>", optional)]
    pub alerts: Vec<FiringAlert>,
    /// The recent past, where it was asked for (`?history_s=60`) and there is a server that
    /// remembers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub history: Option<History>,
}

/// The age at which a sample is late, where they come at this interval.
pub(crate) fn late_ms(interval_ms: u64) -> u64 {
    5_000 + 3 * interval_ms
}

/// Whether a sample tells how things are at `now_ms`: the collector runs and is not late.
pub(crate) fn is_fresh(sample: &Sample, collector: &CollectorStatus, now_ms: u64) -> bool {
    let is_late = now_ms.saturating_sub(sample.at_ms) >= late_ms(sample.interval_ms.into());
    !is_late && collector.state == CollectorState::Running
}

/// What the child that reads the driver is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct CollectorStatus {
    /// Its state.
    pub state: CollectorState,
    /// Since when.
    pub since_ms: u64,
    /// Why, in words for people, where it is not running.
    pub message: Option<String>,
    /// When a pause ends by itself; left out where it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub resumes_ms: Option<u64>,
    /// The socket of the server whose collector it is, where this server has joined that one; left
    /// out where the collector is this server's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub joined: Option<String>,
}

/// States of the collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CollectorState {
    /// Started, nothing read yet.
    Starting,
    /// Samples are coming.
    Running,
    /// It ended or fell silent and is being replaced.
    Restarting,
    /// There is nothing to read: library, driver or GPU is missing. It is tried again now and then.
    Unavailable,
    /// Somebody asked that the GPU be let go of (`gpumon pause`). Nothing is read until `gpumon
    /// resume`.
    Paused,
}

impl CollectorState {
    /// Every state.
    pub const ALL: [Self; 5] = [
        Self::Starting,
        Self::Running,
        Self::Restarting,
        Self::Unavailable,
        Self::Paused,
    ];
}

/// The recent past of every GPU, by metric, on one time axis.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct History {
    /// When each sample was put together, oldest first.
    pub times_ms: Vec<u64>,
    /// So many of the first are no samples: their values are means of the ten seconds around that
    /// time, as an earlier server has left them. Left out where there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[ts(as = "Option<usize>", optional)]
    pub means: usize,
    /// One entry per GPU whose UUID is known.
    pub gpus: Vec<GpuHistory>,
    /// One entry per MIG device; left out where none was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<GpuHistory>>", optional)]
    pub mig_devices: Vec<GpuHistory>,
    /// The machine's, in the form of a GPU's; left out where none was asked for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[ts(as = "Option<BTreeMap<String, Vec<Option<f32>>>>", optional)]
    pub host: BTreeMap<String, Vec<Option<f32>>>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// One GPU's past, or a MIG device's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct GpuHistory {
    /// Its UUID.
    pub uuid: String,
    /// Per metric of the catalogue, as `power.draw_watts`: one value for each of `times_ms`, `null`
    /// where there was none. Left out where there is no value at all.
    pub metrics: BTreeMap<String, Vec<Option<f32>>>,
    /// Who held its memory, the first to come first, at most 16; left out unless
    /// `processes.memory_bytes` was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<HolderHistory>>", optional)]
    pub holders: Vec<HolderHistory>,
}

/// What somebody held of a GPU's memory: a notebook with all that its kernel has started, or
/// another process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct HolderHistory {
    /// As it was seen last: the notebook's kernel, the largest of its processes where the kernel
    /// holds nothing, or the process.
    pub process: Process,
    /// One value for each of `times_ms`, `null` where it held nothing.
    pub memory_bytes: Vec<Option<f32>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_frame_is_read_as_it_is_written_and_no_other() {
        for text in [
            r#"{"type":"pause"}"#,
            r#"{"type":"resume"}"#,
            r#"{"type":"interval","ms":1000}"#,
            r#"{"type":"traces","on":true}"#,
            r#"{"type":"runs","on":false}"#,
            r#"{"type":"history","metrics":["power.draw_watts"]}"#,
        ] {
            let frame: ClientFrame = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&frame).unwrap(), text);
        }
        for (text, why) in [
            (
                r#"{"type":"pauses"}"#,
                "unknown variant `pauses`, expected one of `pause`, `resume`, `interval`",
            ),
            (r#"{"ms":1000}"#, "missing field `type`"),
            (r#"{"type":"interval"}"#, "missing field `ms`"),
            (
                r#"{"type":"interval","ms":-1}"#,
                "`ms`: invalid value: integer `-1`, expected u32",
            ),
            (r#"{"type":"pause","ms":1000}"#, "unknown field `ms`"),
            (r#"["pause"]"#, "invalid type: sequence, expected a map"),
        ] {
            let error = serde_json::from_str::<ClientFrame>(text)
                .unwrap_err()
                .to_string();
            assert!(error.starts_with(why), "{text}: {error}");
        }
    }
}
