//! One run as its reports make it.

use gpumon_probe::model::{Run, RunStatus, now_ms};

use super::{
    report::Report,
    state::{RunDetails, RunDevice, RunItem, RunPhase, RunState, RunStep},
};

/// Results and sentences that are kept of one run.
const ITEMS: usize = 512;
/// Steps that become events: more than any catalogue has, and fewer than would push out all else that happened.
const STEP_EVENTS: usize = 64;

/// A run and all that has come of it.
#[derive(Debug)]
pub(crate) struct RunRecord {
    pub(crate) state: RunState,
    items: Vec<RunItem>,
    step_events: usize,
}

/// What a report means for those who are told of events.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum News {
    Began,
    Step,
    /// Nothing that is an event.
    None,
}

impl RunRecord {
    pub(crate) fn new(state: RunState) -> Self {
        Self { state, items: Vec::new(), step_events: 0 }
    }

    /// Takes in a report. `index_of` finds the GPU of a UUID.
    pub(crate) fn take(&mut self, report: Report, index_of: impl Fn(&str) -> Option<u32>) -> News {
        let state = &mut self.state;
        match report {
            // A second beginning begins nothing.
            Report::Begun { title, devices, steps } if state.steps == 0 => {
                let index = |uuid: Option<&String>| uuid.and_then(|uuid| index_of(uuid));
                let device = |it: super::report::Device| RunDevice { index: index(it.uuid.as_ref()), name: it.name };
                state.devices = devices.into_iter().map(device).collect();
                state.title = title;
                state.steps = steps.max(1);
                News::Began
            }
            Report::Phase { step, id, phase } => {
                let before = state.step.replace(RunStep { number: step, id, phase });
                (state.share, state.text) = (None, String::new());
                let is_next = before.is_none_or(|before| before.number != step);
                let is_marked = is_next || matches!(phase, RunPhase::Holding | RunPhase::GivingBack);
                if !is_marked || state.steps == 0 || self.step_events == STEP_EVENTS {
                    return News::None;
                }
                self.step_events += 1;
                News::Step
            }
            Report::Progress { share, text } => {
                (state.share, state.text) = (share, text);
                News::None
            }
            Report::Item(item) => {
                if self.items.len() < ITEMS {
                    self.items.push(item.clone());
                    state.items = self.items.len() as u32;
                    state.newest = Some(item);
                }
                News::None
            }
            Report::Ended { code } => {
                state.code = Some(code);
                News::None
            }
            Report::Begun { .. } | Report::Unknown => News::None,
        }
    }

    /// It is over.
    pub(crate) fn end(&mut self, status: RunStatus, error: Option<String>) {
        let state = &mut self.state;
        state.status = status;
        state.error = error;
        state.ended_ms = Some(now_ms());
        (state.step, state.share, state.text) = (None, None, String::new());
    }

    /// Why a step failed, the last of those that did.
    pub(crate) fn last_failure(&self) -> Option<String> {
        self.items.iter().rev().find_map(|item| match item {
            RunItem::Failed { id, error } => Some(format!("{id}: {error}")),
            _ => None,
        })
    }

    /// Whether its process has said on what it works, which is when others are told of it.
    pub(crate) fn has_begun(&self) -> bool {
        self.state.steps > 0
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state.status == RunStatus::Running
    }

    /// As events tell of it.
    pub(crate) fn as_event(&self) -> Run {
        let RunState { run, kind, title, status, step, .. } = &self.state;
        let word = |step: &RunStep| match step.phase {
            RunPhase::Holding => format!("{}, memory held", step.id),
            RunPhase::GivingBack => format!("{}, memory given back", step.id),
            _ => step.id.clone(),
        };
        let step = step.as_ref().map(word);
        Run { run: run.clone(), kind: *kind, title: title.clone(), step, status: *status }
    }

    pub(crate) fn details(&self) -> RunDetails {
        RunDetails { state: self.state.clone(), all: self.items.clone() }
    }
}
