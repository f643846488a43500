//! The messages of `/api/v1/stream` in both directions, and of `/api/v1/snapshot` and
//! `/api/v1/answers`.
//!
//! Inventory, sample and event frames are the collector's lines, byte for byte.

use std::{collections::BTreeMap, ops::RangeInclusive};

use gpumon_probe::{
    model::{
        EnergyPrice, Event, FiringAlert, GpuDetails, Inventory, Object, Platform, Process, Sample,
        Trace, read_type,
    },
    tagged,
    vendor::GpuAnswers,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::runs::state::RunState;

/// The sampling intervals that clients may request, in milliseconds.
pub const INTERVAL_LIMITS_MS: RangeInclusive<u32> = 100..=60_000;

/// A frame from the server to a client. The key `type` contains its kind.
// Only one value exists at a time, so a large variant wastes no memory.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq, Serialize, TS, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerFrame {
    /// The first frame of every connection.
    Hello(Hello),
    /// The GPUs, driver and host, after every change.
    Inventory(Inventory),
    /// The readings taken at one time.
    Sample(Sample),
    /// One GPU's slowly changing readings, every ten seconds.
    Details(GpuDetails),
    /// The driver's records of one GPU's activity between two samples, for clients that requested
    /// traces.
    Trace(Trace),
    /// An event, such as the start of a process.
    Event(Event),
    /// The firing alerts, after every change.
    Alerts {
        /// The firing alerts, the most severe first.
        firing: Vec<FiringAlert>,
    },
    /// The state of the collector, after every change.
    Collector(CollectorStatus),
    /// The history, sent after a pause or for requested metrics.
    History(History),
    /// A workload run that has changed, for clients that requested runs.
    Run(RunState),
    /// The client was too slow, so some samples or events were not sent.
    Lagged {
        /// The number of samples and events that were not sent.
        missed: u64,
    },
    /// The time of the server's clock. A heartbeat follows the hello, whose time can be slightly
    /// old. Further ones are sent when there was no other frame for a few seconds, so that a client
    /// can detect a broken connection.
    Heartbeat {
        /// The time of the server's clock, in milliseconds since 1970.
        at_ms: u64,
    },
    /// The server received an invalid frame from the client. The connection continues.
    Error {
        /// A description of the error and of valid frames.
        message: String,
    },
}

impl ServerFrame {
    /// Decodes a frame about GPUs or the collector. Returns `None` for other frames, including
    /// those of newer servers.
    ///
    /// # Errors
    /// Returns an error if the text is not a frame.
    pub fn decode(text: &str) -> Result<Option<Self>, serde_json::Error> {
        Ok(Some(match &*read_type(text)? {
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

/// A frame from a client to the server. The key `type` contains its kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ClientFrame {
    /// Stops samples until `resume`, for example because the page is hidden. Events and states are
    /// still sent.
    Pause {},
    /// Sends a history frame, and then samples again.
    Resume {},
    /// Limits the samples to one per interval. GPUs are read at the shortest interval that any
    /// client requests. Without this frame, the server's default interval applies, which is one
    /// second unless configured.
    Interval {
        /// The interval in milliseconds, from 100 to 60000.
        ms: u32,
    },
    /// Starts or stops `trace` frames. None are sent during a pause.
    Traces {
        /// Whether to send `trace` frames.
        on: bool,
    },
    /// Reports whether somebody is watching the client. Without this frame, somebody is assumed to
    /// be. While nobody watches any client, expensive readings (hardware counters, rates, energy)
    /// are only taken every ten seconds.
    Watching {
        /// Whether somebody watches the client.
        on: bool,
    },
    /// Starts or stops `run` frames. One is sent for each known run, and then one after every
    /// change. During a pause, none are sent; they follow after the pause.
    Runs {
        /// Whether to send `run` frames.
        on: bool,
    },
    /// Requests the history of these metrics, immediately and after each pause. Without this frame,
    /// the history contains the metrics of the overview. For an unknown metric, an error frame
    /// precedes the history.
    History {
        /// The names in the catalog, such as `pcie.tx_bytes_per_second` and
        /// `host.cpu.busy_percent`. Metrics of MIG devices begin with `mig.`, such as
        /// `mig.memory.used_bytes`. `processes.memory_bytes` is the memory of each process.
        metrics: Vec<String>,
    },
}

tagged!(ClientFrame by "type" check_no_field_remains {
    "pause" => Pause {},
    "resume" => Resume {},
    "interval" => Interval { ms },
    "traces" => Traces { on },
    "watching" => Watching { on },
    "runs" => Runs { on },
    "history" => History { metrics },
});

/// The first frame. It contains all data that a client needs to render its view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Hello {
    /// The version of gpumon, such as `0.1.0`.
    pub version: String,
    /// The time of the server's clock in milliseconds since 1970, for clients whose clocks differ.
    pub at_ms: u64,
    /// The state of the collector.
    pub collector: CollectorStatus,
    /// The GPUs, driver and host; `null` until the collector has sent them.
    pub inventory: Option<Inventory>,
    /// The newest sample; `null` if there is none.
    pub sample: Option<Sample>,
    /// Each GPU's slowly changing readings, if available.
    pub details: Vec<GpuDetails>,
    /// The recent events, the oldest first.
    pub events: Vec<Event>,
    /// The firing alerts, most severe first. Omitted if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<FiringAlert>>", optional)]
    pub alerts: Vec<FiringAlert>,
    /// The samples of the last minutes.
    pub history: History,
    /// Whether this server shows a fleet at `/api/v1/fleet`. Omitted if `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[ts(as = "Option<bool>", optional)]
    pub fleet: bool,
    /// The price of energy for calculating costs. Omitted if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub energy_price: Option<EnergyPrice>,
}

/// The response of `/api/v1/snapshot`, and the output of `gpumon --json`: all current data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Snapshot {
    /// The version of gpumon, such as `0.1.0`.
    pub version: String,
    /// The state of the collector.
    pub collector: CollectorStatus,
    /// The GPUs, driver and host; `null` until the collector has sent them.
    pub inventory: Option<Inventory>,
    /// The newest sample; `null` if there is none.
    pub sample: Option<Sample>,
    /// Each GPU's slowly changing readings, if available.
    pub details: Vec<GpuDetails>,
    /// The recent events, oldest first. Empty if no server is running to keep them.
    pub events: Vec<Event>,
    /// The firing alerts, most severe first. Omitted if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<FiringAlert>>", optional)]
    pub alerts: Vec<FiringAlert>,
    /// The recent history, if it was requested (`?history_s=60`) and a server is running to keep
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub history: Option<History>,
}

/// Returns the age, in milliseconds, at which a sample counts as late with this sampling interval.
pub(crate) fn late_sample_age_ms(interval_ms: u64) -> u64 {
    5_000 + 3 * interval_ms
}

/// Returns `true` if the collector is running and the sample is not late, so that it shows the
/// state at `now_ms`.
pub(crate) fn is_fresh_sample(sample: &Sample, collector: &CollectorStatus, now_ms: u64) -> bool {
    let is_late =
        now_ms.saturating_sub(sample.at_ms) >= late_sample_age_ms(sample.interval_ms.into());
    !is_late && collector.state == CollectorState::Running
}

/// The state of the process that reads the driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct CollectorStatus {
    /// The current state of the collector.
    pub state: CollectorState,
    /// The time since which the collector has been in this state.
    pub since_ms: u64,
    /// A description of the reason, if the collector is not running.
    pub message: Option<String>,
    /// The time at which a pause ends automatically. Omitted if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub resumes_ms: Option<u64>,
    /// The socket of the server that this server has joined and that runs the collector. Omitted if
    /// this server runs its own collector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub joined: Option<String>,
}

/// The possible states of the collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CollectorState {
    /// The collector has started, but has not sent a sample yet.
    Starting,
    /// The collector is sending samples.
    Running,
    /// The collector has ended or does not respond, and is being restarted.
    Restarting,
    /// There are no readings because a library, the driver or a GPU is missing. The server retries
    /// regularly.
    Unavailable,
    /// The GPU was released on request (`gpumon pause`). No readings are taken until `gpumon
    /// resume`.
    Paused,
}

impl CollectorState {
    pub const ALL: [Self; 5] = [
        Self::Starting,
        Self::Running,
        Self::Restarting,
        Self::Unavailable,
        Self::Paused,
    ];
}

/// The recent history of all GPUs, by metric. All metrics share one time axis.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct History {
    /// The time of each sample, the oldest first.
    pub times_ms: Vec<u64>,
    /// The number of leading values that are means instead of samples. They are from before a
    /// restart of the server, and each covers the ten seconds around its time. Omitted if there are
    /// none.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[ts(as = "Option<usize>", optional)]
    pub means: usize,
    /// The GPUs whose UUIDs are known.
    pub gpus: Vec<GpuHistory>,
    /// The MIG devices. Omitted if none was requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<GpuHistory>>", optional)]
    pub mig_devices: Vec<GpuHistory>,
    /// The metrics of the host by name. Omitted if none was requested.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[ts(as = "Option<BTreeMap<String, Vec<Option<f32>>>>", optional)]
    pub host: BTreeMap<String, Vec<Option<f32>>>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The history of one GPU or MIG device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct GpuHistory {
    /// The UUID of the device.
    pub uuid: String,
    /// The metrics by name, such as `power.draw_watts`. Each has one value for each of `times_ms`,
    /// or `null` if there was none. Metrics without any value are omitted.
    pub metrics: BTreeMap<String, Vec<Option<f32>>>,
    /// The processes that held the GPU's memory, at most 16, in the order of their appearance.
    /// Omitted unless `processes.memory_bytes` was requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<HolderHistory>>", optional)]
    pub holders: Vec<HolderHistory>,
}

/// The GPU memory held by a notebook, including all processes of its kernel, or by another process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct HolderHistory {
    /// The last state of the process. For a notebook, this is the kernel's process, or its largest
    /// other process if the kernel itself holds no memory.
    pub process: Process,
    /// The memory in bytes for each of `times_ms`, or `null` if none was held.
    pub memory_bytes: Vec<Option<f32>>,
}

/// The driver's answers to the collector at the newest sample, for gpumon's `smi` command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answers {
    /// The state of the collector.
    pub collector: CollectorStatus,
    /// The platform that the answers belong to. `None` until the collector has sent it, and while
    /// gpumon's GPU indexes differ from the driver's.
    pub platform: Option<Platform>,
    /// The time of the newest sample; `None` if no sample has arrived.
    pub at_ms: Option<u64>,
    /// The sampling interval at the time of the newest sample, in milliseconds.
    pub interval_ms: u32,
    /// The driver's answers for each GPU.
    pub gpus: Vec<GpuAnswers>,
}

impl Answers {
    /// Returns the answers and their platform if they are recent at `now_ms`. The newest sample may
    /// be at most one interval plus half a second old, and never more than one and a half seconds.
    pub fn into_recent_answers(self, now_ms: u64) -> Option<(Platform, Vec<GpuAnswers>)> {
        let patience = 500 + u64::from(self.interval_ms).min(1000);
        let is_fresh = now_ms.saturating_sub(self.at_ms?) <= patience;
        (is_fresh && self.collector.state == CollectorState::Running)
            .then(|| self.platform.map(|platform| (platform, self.gpus)))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_frame_round_trips_or_is_refused() {
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
