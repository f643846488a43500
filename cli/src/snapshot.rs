//! A snapshot of all readings, taken from a running server or from the driver.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow};
use gpumon_probe::{
    allocation::SLURM_GPU_FOLDER,
    model::{
        Absence, GpuDetails, GpuSample, Health, Inventory, Process, Reading, Record, Sample,
        Vendor, now_ms,
    },
    owner::{CommandLines, Resolver},
    sampler::{self, OneShotReadings, Options},
    vendor::{ReadDepth, Source, SourceError},
};
use gpumon_server::frame::{self, CollectorState, CollectorStatus};

use crate::{
    describe::Thresholds,
    exit::Result,
    local_server::ServerArgs,
    options::{SourceArgs, read_environment_options},
    table::{MAX_HISTORY_MS, UTILIZATION_METRIC, UtilizationHistory, View},
};

/// The maximum time to wait for a server's response, which normally takes a millisecond.
const SERVER_TIMEOUT: Duration = Duration::from_secs(1);

/// The maximum age of a sample that counts as current, in milliseconds.
const MAX_AGE_MS: u64 = 2_500;

/// A sample up to this age, in milliseconds, always counts as current. If the server's sampling
/// interval is short, the usual limit would reject samples that are only slightly late.
const MIN_AGE_LIMIT_MS: u64 = 1_000;

pub(crate) struct Snapshot {
    /// The server's snapshot. Its inventory and sample are moved to the fields below.
    pub(crate) frame: frame::Snapshot,
    pub(crate) inventory: Inventory,
    pub(crate) sample: Sample,
    pub(crate) past: UtilizationHistory,
    /// Whether the snapshot is based on a single sample, so that earlier samples are missing.
    pub(crate) is_single: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SnapshotContents {
    /// The utilization of the last minute.
    Past,
    /// Details that change slowly, and events.
    Everything,
    Nothing,
}

/// The sources from which a snapshot can be taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SourceSelection<'a> {
    pub(crate) source: &'a SourceArgs,
    pub(crate) server: &'a ServerArgs,
    /// The users whose command lines are shown. If these are all users, command lines that a server
    /// hides are read from `/proc`.
    pub(crate) commands: CommandLines,
}

impl Snapshot {
    /// Takes a snapshot from a server with a fresh sample. If there is none, reads the GPUs
    /// directly.
    pub(crate) fn take(
        at: SourceSelection<'_>,
        need: SnapshotContents,
        depth: ReadDepth,
    ) -> Result<Self> {
        match Self::from_server(at, need)? {
            Some(snapshot) => Ok(snapshot),
            None => Self::read_in_process(&at.source.open()?, need, depth, at.commands),
        }
    }

    /// Takes a snapshot from a server. Returns `None` if no server can provide a snapshot. If the
    /// user named the server, returns an error instead of `None`.
    pub(crate) fn from_server(
        at: SourceSelection<'_>,
        need: SnapshotContents,
    ) -> Result<Option<Self>> {
        if at.source.bypasses_server() && !at.server.is_typed() {
            return Ok(None);
        }
        match Self::request(at.server, need, at.commands) {
            Ok(snapshot) => Ok(Some(snapshot).filter(|snapshot| {
                at.server.named_socket().is_some() || !snapshot.inventory.platform.is_simulated
            })),
            Err(error) if at.server.is_typed() => Err(error.into()),
            Err(_) => Ok(None),
        }
    }

    fn request(
        server: &ServerArgs,
        need: SnapshotContents,
        commands: CommandLines,
    ) -> anyhow::Result<Self> {
        let server = server.connect()?;
        let name = server.path.display().to_string();
        let target = match need {
            SnapshotContents::Past => {
                format!(
                    "/api/v1/snapshot?brief=true&history_s={}&metrics={UTILIZATION_METRIC}",
                    MAX_HISTORY_MS / 1000
                )
            }
            SnapshotContents::Everything => "/api/v1/snapshot".to_owned(),
            SnapshotContents::Nothing => "/api/v1/snapshot?brief=true".to_owned(),
        };
        let answer = server
            .send_get_request_within(SERVER_TIMEOUT, &target)
            .with_context(|| {
                format!(
                    "the server at {name} does not respond; restart the server, or use --no-daemon"
                )
            })?;
        let snapshot: frame::Snapshot = (answer.status == 200)
            .then_some(answer.body)
            .and_then(|body| serde_json::from_str(&body).ok())
            .ok_or_else(|| {
                anyhow!(
                    "the server at {name} runs a different version of gpumon; restart the server, \
                     or use --no-daemon"
                )
            })?;
        if snapshot
            .inventory
            .as_ref()
            .is_some_and(|inventory| inventory.playback.is_some())
        {
            anyhow::bail!(
                "the server at {name} replays a recording: view it with `gpumon top`, or use \
                 --no-daemon"
            );
        }
        let message = snapshot.collector.message.clone();
        Self::from_frame(snapshot, now_ms(), commands).ok_or_else(|| {
            let why = message.unwrap_or_else(|| "the server has no recent sample".to_owned());
            anyhow!(
                "the server at {name} has no readings at the moment: {why}; use --no-daemon to \
                 read the GPUs directly"
            )
        })
    }

    /// Converts a server's frame to a snapshot. Returns `None` if the sample in the frame is not
    /// current.
    fn from_frame(mut frame: frame::Snapshot, now_ms: u64, commands: CommandLines) -> Option<Self> {
        let is_running = frame.collector.state == CollectorState::Running;
        frame.sample = frame.sample.filter(|sample| {
            let oldest_ms = (2 * u64::from(sample.interval_ms)).clamp(MIN_AGE_LIMIT_MS, MAX_AGE_MS);
            is_running && sample.at_ms.abs_diff(now_ms) <= oldest_ms
        });
        let past = frame.history.take();
        let past = past.as_ref().map(UtilizationHistory::from_history);
        let mut snapshot = Self::new(frame, past.unwrap_or_default())?;
        if commands == CommandLines::All && !snapshot.inventory.platform.is_simulated {
            HiddenCommands::new().fill_in_hidden_commands(&mut snapshot.sample);
        }
        Some(snapshot)
    }

    /// Creates a snapshot from a server's frame. Returns `None` if the frame has no inventory or no
    /// sample.
    pub(crate) fn new(mut frame: frame::Snapshot, past: UtilizationHistory) -> Option<Self> {
        let (inventory, sample) = (frame.inventory.take()?, frame.sample.take()?);
        Some(Self {
            frame,
            inventory,
            sample,
            past,
            is_single: false,
        })
    }

    /// Reads the GPUs in this process.
    ///
    /// # Errors
    /// Returns an error if no GPU can be read.
    pub(crate) fn read_in_process(
        source: &Arc<dyn Source>,
        need: SnapshotContents,
        depth: ReadDepth,
        commands: CommandLines,
    ) -> Result<Self> {
        let options = Options {
            depth,
            details: need == SnapshotContents::Everything,
            slurm_gpus: Some(SLURM_GPU_FOLDER.into()),
            ..read_environment_options(Duration::from_secs(1), commands)
        };
        let OneShotReadings {
            inventory,
            sample,
            details,
            ..
        } = sampler::sample_once(source, &options)?;
        Ok(Self::from_reading(inventory, sample, details))
    }

    pub(crate) fn from_reading(
        inventory: Inventory,
        sample: Sample,
        details: Vec<GpuDetails>,
    ) -> Self {
        let collector = CollectorStatus {
            state: CollectorState::Running,
            since_ms: now_ms(),
            message: None,
            resumes_ms: None,
            joined: None,
        };
        let frame = frame::Snapshot {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            collector,
            inventory: None,
            sample: None,
            details,
            events: Vec::new(),
            alerts: Vec::new(),
            history: None,
        };
        Self {
            frame,
            inventory,
            sample,
            past: UtilizationHistory::default(),
            is_single: true,
        }
    }

    pub(crate) fn into_frame(self) -> frame::Snapshot {
        frame::Snapshot {
            inventory: Some(self.inventory),
            sample: Some(self.sample),
            ..self.frame
        }
    }

    pub(crate) fn view(&self, thresholds: Thresholds) -> View<'_> {
        let CollectorStatus { state, message, .. } = &self.frame.collector;
        View {
            inventory: &self.inventory,
            sample: &self.sample,
            past: &self.past,
            is_one_shot: self.is_single,
            with_total: false,
            listed: None,
            thresholds,
            notice: message
                .as_deref()
                .filter(|_| *state != CollectorState::Running),
        }
    }
}

const LOOKUP_TIMEOUT: Duration = Duration::from_millis(200);

/// A resolver for command lines that a server hides. The server hides them because it does not know
/// which user sent the request. Like `ps`, the resolver reads only command lines that this user may
/// read.
pub(crate) struct HiddenCommands(Resolver);

impl HiddenCommands {
    pub(crate) fn new() -> Self {
        Self(Resolver::new("/proc", CommandLines::All))
    }

    /// Fills in the hidden command lines and names that this user may read.
    pub(crate) fn fill_in_hidden_commands(&mut self, sample: &mut Sample) {
        let mut found: Vec<Process> = list_processes_with_hidden_command(sample)
            .map(|process| process.clone())
            .collect();
        self.0.fill_details(&mut found, LOOKUP_TIMEOUT);
        for process in list_processes_with_hidden_command(sample) {
            // The server may run in another PID namespace, in which the PID belongs to another
            // process.
            let same = found
                .iter()
                .find(|same| same.pid == process.pid && same.started_ms == process.started_ms);
            if let Some(same) = same.filter(|same| same.command.value().is_some()) {
                process.command.clone_from(&same.command);
                process.name.clone_from(&same.name);
            }
        }
    }
}

fn list_processes_with_hidden_command(sample: &mut Sample) -> impl Iterator<Item = &mut Process> {
    let gpus = sample.gpus.iter_mut();
    let processes = gpus.filter_map(|gpu| gpu.processes.value_mut());
    processes
        .flatten()
        .filter(|process| process.command == Reading::Absent(Absence::Hidden))
}

/// After the driver has started, wait at most this long for all GPUs to report everything.
const DRIVER_READ_TIMEOUT: Duration = Duration::from_secs(4);

/// The result of reading the driver once.
pub(crate) enum DriverState {
    Refused(SourceError),
    /// The driver has not responded.
    Silent,
    /// The driver has responded, but possibly not for every GPU.
    Answers(Box<DriverAnswer>),
}

/// The newest readings of the driver.
#[derive(Debug, Clone)]
pub(crate) struct DriverAnswer {
    pub(crate) inventory: Inventory,
    pub(crate) sample: Option<Sample>,
    /// The details of the GPUs, by GPU index. GPUs that have not sent details are missing.
    pub(crate) details: BTreeMap<u32, GpuDetails>,
}

impl DriverState {
    pub(crate) fn answer(&self) -> Option<&DriverAnswer> {
        match self {
            Self::Answers(answer) => Some(answer),
            Self::Refused(_) | Self::Silent => None,
        }
    }

    pub(crate) fn is_simulated(&self) -> bool {
        self.answer()
            .is_some_and(|answer| answer.inventory.platform.is_simulated)
    }

    /// Returns `true` if NVIDIA's driver responds. Also returns `true` if no driver responds,
    /// because NVIDIA's driver may be the missing one.
    pub(crate) fn uses_nvidia(&self) -> bool {
        self.answer().is_none_or(|answer| {
            let platform = &answer.inventory.platform;
            platform.find_driver(Vendor::Nvidia).is_some()
        })
    }
}

impl DriverAnswer {
    pub(crate) fn new(inventory: Inventory) -> Self {
        Self {
            inventory,
            sample: None,
            details: BTreeMap::new(),
        }
    }

    /// Applies a record. Returns `true` if it was a sample.
    pub(crate) fn apply(&mut self, record: Record) -> bool {
        let is_sample = matches!(record, Record::Sample(_));
        match record {
            Record::Inventory(inventory) => self.inventory = inventory,
            Record::Sample(sample) => self.sample = Some(sample),
            Record::Details(details) => drop(self.details.insert(details.index, details)),
            Record::Trace(_) | Record::Answers(_) | Record::Event(_) => {}
        }
        is_sample
    }

    pub(crate) fn gpus(&self) -> impl Iterator<Item = &GpuSample> {
        self.sample.iter().flat_map(|sample| &sample.gpus)
    }

    /// Returns the healthy GPUs, each with its details if they have arrived.
    pub(crate) fn healthy_gpus(&self) -> impl Iterator<Item = (&GpuSample, Option<&GpuDetails>)> {
        let well = self.gpus().filter(|gpu| gpu.health == Health::Ok);
        well.map(|gpu| (gpu, self.details.get(&gpu.index)))
    }

    /// Returns `true` if a sample and the details of every healthy GPU have arrived.
    pub(crate) fn is_complete(&self) -> bool {
        self.sample.is_some() && self.healthy_gpus().all(|(_, details)| details.is_some())
    }
}

/// Reads records from the driver until `is_enough` returns `true` or the time limit is reached.
/// `opening` is the maximum time for the driver to start. `is_enough` is called after each record,
/// with `true` as its second argument if the record is a sample. If the driver hangs, the thread
/// that reads it is abandoned.
pub(crate) fn read_driver(
    source: &SourceArgs,
    commands: CommandLines,
    opening: Duration,
    mut is_enough: impl FnMut(&DriverAnswer, bool) -> bool,
) -> DriverState {
    let records = source.start_reading(commands);
    let mut answer = match records.recv_timeout(opening) {
        Ok(Ok(Record::Inventory(inventory))) => DriverAnswer::new(inventory),
        Ok(Err(error)) => return DriverState::Refused(error),
        // The inventory always comes first. Any other result means that the driver hangs.
        Ok(Ok(_)) | Err(_) => return DriverState::Silent,
    };
    let deadline = Instant::now() + DRIVER_READ_TIMEOUT;
    while let Ok(Ok(record)) =
        records.recv_timeout(deadline.saturating_duration_since(Instant::now()))
    {
        let is_sample = answer.apply(record);
        if is_enough(&answer, is_sample) {
            break;
        }
    }
    DriverState::Answers(Box::new(answer))
}

#[cfg(test)]
mod tests {
    use crate::table::examples;

    use super::*;

    fn convert_snapshot(age_ms: u64, interval_ms: u32, state: CollectorState) -> Option<Snapshot> {
        let source = "sim:1"
            .parse::<gpumon_probe::vendor::SourceChoice>()
            .unwrap()
            .open(&gpumon_probe::vendor::Roots::default())
            .unwrap();
        let mut snapshot = Snapshot::read_in_process(
            &source,
            SnapshotContents::Nothing,
            ReadDepth::OneShot,
            CommandLines::All,
        )
        .ok()?
        .into_frame();
        let sample = snapshot.sample.as_mut()?;
        let now_ms = sample.at_ms + age_ms;
        sample.interval_ms = interval_ms;
        snapshot.collector.state = state;
        Snapshot::from_frame(snapshot, now_ms, CommandLines::All)
    }

    #[test]
    fn stale_sample_or_paused_collector_is_rejected() {
        for (age_ms, interval_ms, is_fresh) in [
            (900, 1000, true),
            (1_999, 1000, true),
            (2_100, 1000, false),
            (900, 100, true),
            (2_600, 60_000, false),
        ] {
            let snapshot = convert_snapshot(age_ms, interval_ms, CollectorState::Running);
            assert_eq!(
                snapshot.is_some(),
                is_fresh,
                "{age_ms} ms old, one every {interval_ms}"
            );
        }
        assert!(convert_snapshot(10, 1000, CollectorState::Paused).is_none());
    }

    #[test]
    fn hidden_command_is_restored_only_for_same_process() {
        let mut known = vec![examples::example_process(
            std::process::id(),
            "ana",
            1.0,
            "",
        )];
        Resolver::new("/proc", CommandLines::All).fill_details(&mut known, Duration::from_secs(20));
        let hidden = |started_ms: Reading<u64>| {
            let mut process = known[0].clone();
            (process.command, process.started_ms) = (Reading::Absent(Absence::Hidden), started_ms);
            process.name = Reading::Now("gpumon".to_owned());
            process
        };
        let stranger = Reading::Now(known[0].started_ms.value().unwrap() - 60_000);
        let mut sample = examples::example_sample(2);
        sample.gpus[0].processes = Reading::Now(vec![hidden(stranger)]);
        sample.gpus[1].processes = Reading::Now(vec![hidden(known[0].started_ms.clone())]);
        HiddenCommands::new().fill_in_hidden_commands(&mut sample);
        let found = |gpu: usize| &sample.gpus[gpu].processes.value().unwrap()[0];
        assert_eq!(
            found(0).command,
            Reading::Absent(Absence::Hidden),
            "a PID that was used again"
        );
        assert!(found(1).command.value().is_some());
        assert_eq!(
            (&found(1).command, &found(1).name),
            (&known[0].command, &known[0].name)
        );
    }
}
