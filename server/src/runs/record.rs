//! The record of one run, built from the reports of its process.

use gpumon_probe::model::{Run, RunStatus, now_ms};
use gpumon_workload::protocol::{Phase, Report};

use super::{
    report_item::{MAX_NAME_CHARS, MAX_PROGRESS_CHARS, clean_text},
    state::{RunDetails, RunDevice, RunItem, RunState, RunStep},
};

/// The maximum number of devices of a run.
const MAX_DEVICES: usize = 64;
/// The maximum number of results and sentences that are kept for a run.
const MAX_ITEMS: usize = 512;
/// The maximum number of steps that become events. No workload has more steps, and this many do not
/// displace all other events.
const MAX_STEP_EVENTS: usize = 64;

#[derive(Debug)]
pub(crate) struct RunRecord {
    pub(crate) state: RunState,
    items: Vec<RunItem>,
    step_events: usize,
}

/// The effect of a report on the event log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RecordChange {
    Began,
    Step,
    Other,
}

impl RunRecord {
    pub(crate) fn new(state: RunState) -> Self {
        Self {
            state,
            items: Vec::new(),
            step_events: 0,
        }
    }

    /// Processes a report. `index_of` returns the index of the GPU with a UUID.
    pub(crate) fn ingest(
        &mut self,
        report: Report,
        index_of: impl Fn(&str) -> Option<u32>,
    ) -> RecordChange {
        let state = &mut self.state;
        match report {
            // Only the first report of the beginning is used.
            Report::Begun {
                title,
                devices,
                steps,
            } if state.steps == 0 => {
                let devices = devices.iter().take(MAX_DEVICES);
                state.devices = devices
                    .map(|device| RunDevice::new(device, &index_of))
                    .collect();
                state.title = clean_text(&title, MAX_PROGRESS_CHARS);
                state.steps = to_u32(steps).max(1);
                RecordChange::Began
            }
            Report::Phase {
                step, id, phase, ..
            } => {
                let (number, id) = (to_u32(step), clean_text(&id, MAX_NAME_CHARS));
                let before = state.step.replace(RunStep {
                    number,
                    id,
                    phase,
                    since_ms: now_ms(),
                });
                (state.share, state.text) = (None, String::new());
                let is_next = before.is_none_or(|before| before.number != number);
                let is_marked = is_next || matches!(phase, Phase::Holding | Phase::GivingBack);
                if !is_marked || state.steps == 0 || self.step_events == MAX_STEP_EVENTS {
                    return RecordChange::Other;
                }
                self.step_events += 1;
                RecordChange::Step
            }
            Report::Progress { share, text, .. } => {
                (state.share, state.text) = (
                    Some(share.clamp(0.0, 1.0)),
                    clean_text(&text, MAX_PROGRESS_CHARS),
                );
                RecordChange::Other
            }
            Report::Ended { code } => {
                state.code = Some(code);
                RecordChange::Other
            }
            report => {
                if let Some(item) =
                    RunItem::from_report(report).filter(|_| self.items.len() < MAX_ITEMS)
                {
                    self.items.push(item.clone());
                    state.items = to_u32(self.items.len());
                    state.newest = Some(item);
                }
                RecordChange::Other
            }
        }
    }

    pub(crate) fn end_run(&mut self, status: RunStatus, error: Option<String>) {
        let state = &mut self.state;
        state.status = status;
        state.error = error;
        state.ended_ms = Some(now_ms());
        (state.step, state.share, state.text) = (None, None, String::new());
    }

    /// Returns `true` if an item contains the reason of a failure.
    pub(crate) fn has_failure(&self) -> bool {
        self.items
            .iter()
            .any(|item| matches!(item, RunItem::Failed { .. }))
    }

    /// Returns `true` if the process has reported its devices. Events are only sent after that.
    pub(crate) fn has_reported_devices(&self) -> bool {
        self.state.steps > 0
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state.status == RunStatus::Running
    }

    pub(crate) fn to_event_run(&self) -> Run {
        let RunState {
            run,
            kind,
            title,
            status,
            step,
            ..
        } = &self.state;
        let word = |step: &RunStep| match step.phase {
            Phase::Holding => format!("{}, memory held", step.id),
            Phase::GivingBack => format!("{}, memory released", step.id),
            _ => step.id.clone(),
        };
        let step = step.as_ref().map(word);
        Run {
            run: run.clone(),
            kind: *kind,
            title: title.clone(),
            step,
            status: *status,
        }
    }

    pub(crate) fn details(&self) -> RunDetails {
        RunDetails {
            state: self.state.clone(),
            all: self.items.clone(),
        }
    }
}

fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
