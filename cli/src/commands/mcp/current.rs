//! MCP tools for the current state: status, processes and events.

use std::cmp::Reverse;

use anyhow::anyhow;
use gpumon_history::span::HistorySpan;
use gpumon_probe::{
    model::{Event, Gpu, GpuName, GpuSample, fields::OVERVIEW},
    untrusted::escape_untrusted,
    vendor::ReadDepth,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Tool, ToolAnswer, sources::Sources};
use crate::{
    describe::{self, Context},
    exit::Result,
    snapshot::{Snapshot, SnapshotContents},
};

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Status {
    /// Only these GPUs, by index (0), vendor (amd:0), UUID or PCI bus ID; all GPUs if omitted.
    gpus: Option<Vec<GpuName>>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Processes {
    /// Only these GPUs, by index (0), vendor (amd:0), UUID or PCI bus ID; all GPUs if omitted.
    gpus: Option<Vec<GpuName>>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Events {
    /// Start of the span: a date, a time of day or both in local time, such as 2026-11-23T20:00, or
    /// a time before now, such as -2h; -1h if omitted.
    since: Option<String>,
    /// End of the span (exclusive), in the formats of `since`; now if omitted.
    until: Option<String>,
    /// Only events of these GPUs, by index (0), vendor (amd:0), UUID or PCI bus ID; all GPUs if
    /// omitted. Events of the machine are always included.
    gpus: Option<Vec<GpuName>>,
    /// Whether to include starts and ends of processes, cells of notebooks and steps of runs.
    #[serde(default)]
    all: bool,
    /// Maximum number of events; the newest are kept. The default is 50.
    #[schemars(range(min = 1, max = MAX_EVENTS))]
    limit: Option<usize>,
}

/// The maximum number of processes per GPU in a response.
const MAX_PROCESSES: usize = 50;

const DEFAULT_SINCE: &str = "-1h";
const DEFAULT_EVENTS: usize = 50;
const MAX_EVENTS: usize = 500;

impl Tool for Status {
    const NAME: &'static str = "gpu_status";
    const TITLE: &'static str = "GPUs now";
    const TYPE: &'static str = "Snapshot";
    const KEYS: &'static str = "\
        inventory sample gpus index uuid name health* utilization gpu_percent activity sm_percent \
        memory used_bytes free_bytes total_bytes power draw_watts limit_watts temperature \
        gpu_celsius throttle_reasons limits* conditions* mig_devices";

    fn description() -> String {
        "Current state of each GPU of this machine: utilization, memory, power, temperature, \
         health, conditions, and what limits its work, with advice. Use it to find out whether a \
         GPU is busy, free, throttled or broken, which one to use, or why a program is slow. \
         `summary` has a line for each GPU."
            .to_owned()
    }

    fn run_tool(self, sources: &Sources) -> Result<ToolAnswer> {
        let snapshot = sources.take_snapshot(
            SnapshotContents::Nothing,
            ReadDepth::Full,
            self.gpus.as_deref(),
        )?;
        Ok(make_answer(snapshot))
    }
}

impl Tool for Processes {
    const NAME: &'static str = "gpu_processes";
    const TITLE: &'static str = "Processes and their GPU memory";
    const TYPE: &'static str = "Snapshot";
    const KEYS: &'static str = "\
        sample gpus index memory used_bytes total_bytes processes pid kind memory_bytes \
        sm_percent mig* name user owner notebook kernel_id path slurm pbs lsf job_id step pod uid \
        namespace container runtime id unit processes_omitted unlisted_memory_bytes";

    fn description() -> String {
        "Processes on each GPU: PID, name, user, notebook, batch job, pod, container or service, \
         memory and share of the GPU's time, sorted by memory with the largest first. Use it to \
         find out who uses a GPU, or why its memory is full. Command lines are not included."
            .to_owned()
    }

    fn run_tool(self, sources: &Sources) -> Result<ToolAnswer> {
        let mut snapshot = sources.take_snapshot(
            SnapshotContents::Nothing,
            ReadDepth::Full,
            self.gpus.as_deref(),
        )?;
        for gpu in &mut snapshot.sample.gpus {
            let Some(processes) = gpu.processes.value_mut() else {
                continue;
            };
            processes.sort_by_key(|process| {
                (Reverse(process.memory_bytes.value().copied()), process.pid)
            });
            let omitted = processes.len().saturating_sub(MAX_PROCESSES);
            processes.truncate(MAX_PROCESSES);
            gpu.processes_omitted = gpu
                .processes_omitted
                .saturating_add(u32::try_from(omitted).unwrap_or(u32::MAX));
        }
        Ok(make_answer(snapshot))
    }
}

impl Tool for Events {
    const NAME: &'static str = "gpu_events";
    const TITLE: &'static str = "Conditions, driver errors and events";
    const TYPE: &'static str = "Snapshot";
    const KEYS: &'static str = "sample gpus index health* conditions* alerts* events*";

    fn description() -> String {
        "Current problems of the GPUs and recent events, the newest first: throttling, idle \
         memory, hangs, memory errors, links that are down, driver errors (Xids) with advice, \
         alerts, marks and runs. Use it when a program failed or is slow, or to check the health \
         of a machine. Earlier events need a running gpumon server."
            .to_owned()
    }

    fn run_tool(self, sources: &Sources) -> Result<ToolAnswer> {
        let limit = self.limit.unwrap_or(DEFAULT_EVENTS);
        if !(1..=MAX_EVENTS).contains(&limit) {
            return Err(anyhow!("limit: {limit} is not between 1 and {MAX_EVENTS}").into());
        }
        let since = self.since.as_deref().unwrap_or(DEFAULT_SINCE);
        let span = super::parse_span(since, self.until.as_deref())?;
        let mut snapshot = sources.take_snapshot(
            SnapshotContents::Everything,
            ReadDepth::Full,
            self.gpus.as_deref(),
        )?;
        // If history cannot be read, the response still contains the current state.
        let past = sources
            .history_source()
            .and_then(|past| past.fetch_history(&span, &OVERVIEW[..1], None));
        let (past, unknown) = match past {
            Ok(past) => (past, None),
            Err(failure) => (HistorySpan::default(), failure.message()),
        };
        let shown: Vec<_> = snapshot.sample.gpus.iter().map(|gpu| gpu.index).collect();
        snapshot.frame.events = past
            .events
            .into_iter()
            .rev()
            .filter(|event| self.selects_event(event, &shown))
            .collect();
        let omitted = snapshot.frame.events.len().saturating_sub(limit);
        snapshot.frame.events.truncate(limit);
        let mut answer = make_answer(snapshot);
        answer.own["events_omitted"] = omitted.into();
        if let Some(why) = unknown {
            answer.own["events_unknown_because"] = escape_untrusted(&why).into();
        }
        Ok(answer)
    }
}

impl Events {
    /// Returns `true` if the tool's arguments select an event. `shown` contains the indices of the
    /// selected GPUs.
    fn selects_event(&self, event: &Event, shown: &[u32]) -> bool {
        use gpumon_probe::model::EventKind::{Cell, ProcessEnded, ProcessStarted, RunStep};
        let is_of_program = matches!(
            event.what,
            ProcessStarted(_) | ProcessEnded(_) | Cell(_) | RunStep(_)
        );
        let gpu = event.gpu.as_ref().filter(|_| self.gpus.is_some());
        (self.all || !is_of_program) && gpu.is_none_or(|gpu| shown.contains(&gpu.index))
    }
}

fn make_answer(snapshot: Snapshot) -> ToolAnswer {
    let context = Context {
        now_ms: snapshot.sample.at_ms,
        is_one_shot: snapshot.is_single,
    };
    let gpus = &snapshot.inventory.gpus;
    let summary: Vec<_> = snapshot
        .sample
        .gpus
        .iter()
        .map(|gpu| {
            let known = gpus.iter().find(|known| known.index == gpu.index);
            escape_untrusted(&summarize_gpu(gpu, known, context))
        })
        .collect();
    let read_by = if snapshot.is_single {
        "this_process"
    } else {
        "server"
    };
    let own = json!({
        "summary": summary,
        "read_by": read_by,
        "simulated": snapshot.inventory.platform.is_simulated,
    });
    ToolAnswer {
        api: json!(snapshot.into_frame()),
        own,
    }
}

/// Describes a GPU in one line, such as `GPU 0, NVIDIA H200: 93 % busy, 78.2/140 GiB, 692/700 W, 64
/// °C; slowed by its power limit`.
fn summarize_gpu(gpu: &GpuSample, known: Option<&Gpu>, context: Context) -> String {
    let name = known
        .and_then(|known| known.name.value())
        .map_or("unknown GPU", String::as_str);
    let (memory, power) = (&gpu.memory, &gpu.power);
    let used = memory
        .used_bytes
        .value()
        .map(|used| describe::format_used_of_total(*used, memory.total_bytes.value().copied()));
    let draw = power
        .draw_watts
        .value()
        .map(|draw| describe::format_power_draw(*draw, power.limit_watts.value().copied()));
    let celsius = gpu
        .temperature
        .gpu_celsius
        .value()
        .map(|celsius| format!("{celsius:.0} °C"));
    let busy = Some(format!("{} busy", describe::format_utilization(gpu)));
    let readings: Vec<_> = [busy, used, draw, celsius].into_iter().flatten().collect();
    let mut summary = format!("GPU {}, {name}: {}", gpu.index, readings.join(", "));
    let unlisted = describe::format_unlisted_processes(gpu);
    let phrases = describe::list_gpu_phrases(gpu, context)
        .into_iter()
        .chain(describe::find_limits_phrase(gpu, context.now_ms))
        .map(|phrase| phrase.long);
    for phrase in phrases.chain(unlisted) {
        summary = summary + "; " + &phrase;
    }
    summary
}
