//! The events that the driver reports: the `[[event]]` tables.

use serde::Deserialize;
use toml::Spanned;

use crate::vendor::Notice;

use super::{Scenario, fault::FaultSettings, quantity::Seconds};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventSettings {
    pub(super) gpu: Spanned<u32>,
    at_s: Seconds,
    pub(super) kind: Spanned<EventSort>,
    pub(super) code: Option<Spanned<u32>>,
    pub(super) pid: Option<Spanned<u32>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EventSort {
    Xid,
    EccCorrected,
    EccUncorrected,
    PowerSource,
    Mig,
}

/// An event that the driver reports on its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Report {
    /// The time of the event, in seconds of the timeline.
    pub at_s: f64,
    pub notice: Notice,
    /// The process that the event concerns.
    pub pid: Option<u32>,
}

impl EventSettings {
    fn report(&self) -> Report {
        let notice = match self.kind.get_ref() {
            EventSort::Xid => Notice::Error {
                code: self.code.as_ref().map_or(0, |code| *code.get_ref()),
            },
            EventSort::EccCorrected => Notice::EccCorrected,
            EventSort::EccUncorrected => Notice::EccUncorrected,
            EventSort::PowerSource => Notice::PowerSource,
            EventSort::Mig => Notice::Partitions,
        };
        Report {
            at_s: self.at_s.0,
            notice,
            pid: self.pid.as_ref().map(|pid| *pid.get_ref()),
        }
    }
}

impl Scenario {
    /// Returns the events of a GPU from a time on, in order of time.
    pub fn reports(&self, gpu: u32, from_s: f64) -> Vec<Report> {
        let own = self
            .event
            .iter()
            .filter(|event| *event.gpu.get_ref() == gpu);
        let mut reports: Vec<Report> = own
            .map(EventSettings::report)
            .filter(|report| report.at_s >= from_s)
            .collect();
        reports.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
        reports
    }

    /// Returns the first time after `after_s` at which there is a report, or a fault starts or
    /// ends.
    pub(crate) fn next_moment_s(&self, after_s: f64) -> Option<f64> {
        let reported = self.event.iter().map(|event| event.at_s.0);
        let moments = reported.chain(self.fault.iter().flat_map(FaultSettings::moments));
        moments
            .filter(|moment| *moment > after_s)
            .min_by(f64::total_cmp)
    }
}
