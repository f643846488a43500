//! Reporting of undecodable firmware tables as driver errors.

use std::time::{Duration, Instant};

use super::{errors::ERRORS, metrics::MetricsError};
use crate::vendor::DriverError;

/// The number of consecutive incomplete tables that counts as an error. A table can be incomplete
/// briefly, for example during a reset.
const MIN_CONSECUTIVE: u32 = 3;

/// The interval at which a persistent error is reported again.
const REPORT_INTERVAL: Duration = Duration::from_mins(5);

/// The undecodable `gpu_metrics` tables of a GPU.
#[derive(Debug, Default)]
pub(super) struct BrokenTables {
    in_a_row: u32,
    reported: Option<Instant>,
    pending: Option<DriverError>,
}

impl BrokenTables {
    /// Records whether the latest table could be decoded. `error` is `None` if it could.
    pub(super) fn observe(&mut self, error: Option<&MetricsError>) {
        // If the GPU does not provide a table, the file is empty, which is not an error.
        let Some(error) = error.filter(|error| **error != MetricsError::Empty) else {
            (self.in_a_row, self.reported) = (0, None);
            return;
        };
        self.in_a_row = self.in_a_row.saturating_add(1);
        let is_lasting =
            matches!(error, MetricsError::Unknown { .. }) || self.in_a_row >= MIN_CONSECUTIVE;
        let is_due = self
            .reported
            .is_none_or(|at| at.elapsed() >= REPORT_INTERVAL);
        let message = error.to_string();
        if let Some((code, _)) = ERRORS.find(&message)
            && is_lasting
            && is_due
        {
            self.reported = Some(Instant::now());
            self.pending = Some(DriverError {
                code,
                pid: None,
                message: Some(message),
            });
        }
    }

    /// Takes the error that is due to be reported, if any.
    pub(super) fn take_due_error(&mut self) -> Option<DriverError> {
        self.pending.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::amd::metrics::Version;

    fn report(tables: &mut BrokenTables, error: Option<&MetricsError>) -> Option<String> {
        tables.observe(error);
        tables.take_due_error()?.message
    }

    #[test]
    fn unknown_version_is_reported_once() {
        let mut tables = BrokenTables::default();
        let version = Version {
            format: 9,
            content: 8,
        };
        let unknown = MetricsError::Unknown { version, size: 120 };
        let message = report(&mut tables, Some(&unknown)).unwrap();
        assert!(message.contains("v9.8 with 120 bytes"), "{message}");
        assert_eq!(report(&mut tables, Some(&unknown)), None);
        assert_eq!(report(&mut tables, None), None);
        assert!(report(&mut tables, Some(&unknown)).is_some());
    }

    #[test]
    fn incomplete_table_is_reported_if_it_lasts() {
        let mut tables = BrokenTables::default();
        let truncated = MetricsError::Truncated {
            length: 4,
            size: 120,
        };
        for error in [Some(&truncated), Some(&truncated), None, Some(&truncated)] {
            assert_eq!(report(&mut tables, error), None);
        }
        assert_eq!(report(&mut tables, Some(&truncated)), None);
        assert!(report(&mut tables, Some(&truncated)).is_some());
        let empty = MetricsError::Empty;
        let reports = (0..9).filter_map(|_| report(&mut tables, Some(&empty)));
        assert_eq!(reports.count(), 0);
    }
}
