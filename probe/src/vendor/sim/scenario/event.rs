//! The events that the simulated driver reports: the `[[event]]` tables.

use serde::Deserialize;
use toml::Spanned;

use crate::vendor::Notice;

use super::{Scenario, fault::FaultSettings, values::Seconds};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventSettings {
    pub(super) gpu: Spanned<u32>,
    at_s: Seconds,
    pub(super) kind: Spanned<EventKind>,
    pub(super) code: Option<Spanned<u32>>,
    pub(super) pid: Option<Spanned<u32>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EventKind {
    Xid,
    EccCorrected,
    EccUncorrected,
    PowerSource,
    Mig,
}

/// An event that the driver reports at a certain time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScheduledEvent {
    /// The time of the event, in seconds on the timeline.
    pub at_s: f64,
    pub notice: Notice,
    /// The PID of the process that the event concerns, if any.
    pub pid: Option<u32>,
}

impl EventSettings {
    fn to_scheduled_event(&self) -> ScheduledEvent {
        let notice = match self.kind.get_ref() {
            EventKind::Xid => Notice::Error {
                code: self.code.as_ref().map_or(0, |code| *code.get_ref()),
            },
            EventKind::EccCorrected => Notice::EccCorrected,
            EventKind::EccUncorrected => Notice::EccUncorrected,
            EventKind::PowerSource => Notice::PowerSource,
            EventKind::Mig => Notice::Partitions,
        };
        ScheduledEvent {
            at_s: self.at_s.0,
            notice,
            pid: self.pid.as_ref().map(|pid| *pid.get_ref()),
        }
    }
}

impl Scenario {
    /// Returns a GPU's events from `from_s` on, sorted by time.
    pub fn list_events(&self, gpu: u32, from_s: f64) -> Vec<ScheduledEvent> {
        let own = self
            .event
            .iter()
            .filter(|event| *event.gpu.get_ref() == gpu);
        let mut reports: Vec<ScheduledEvent> = own
            .map(EventSettings::to_scheduled_event)
            .filter(|report| report.at_s >= from_s)
            .collect();
        reports.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
        reports
    }

    /// Returns the first time after `after_s` at which an event is reported, or a fault starts or
    /// ends.
    pub(crate) fn next_change_s(&self, after_s: f64) -> Option<f64> {
        let reported = self.event.iter().map(|event| event.at_s.0);
        let moments = reported.chain(
            self.fault
                .iter()
                .flat_map(FaultSettings::start_and_end_times),
        );
        moments
            .filter(|moment| *moment > after_s)
            .min_by(f64::total_cmp)
    }
}
