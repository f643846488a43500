//! All measurements, of which those that nobody asks for are forgotten in the end.

use std::collections::BTreeMap;

use super::measurement::Measurement;

/// A loop of a thousand steps a second, each of which is measured, is remembered for some seconds; what is kept in a
/// program for longer was asked for, or is forgotten by then.
const MOST: usize = 20_000;

#[derive(Default)]
pub(super) struct Measurements(BTreeMap<u64, Measurement>);

impl Measurements {
    pub(super) fn add(&mut self, number: u64, measurement: Measurement) {
        self.0.insert(number, measurement);
        while self.0.len() > MOST
            && let Some(oldest) = self
                .0
                .iter()
                .find(|(_, one)| !one.is_running())
                .map(|(number, _)| *number)
        {
            self.0.remove(&oldest);
        }
    }

    pub(super) fn get(&mut self, number: u64) -> Option<&mut Measurement> {
        self.0.get_mut(&number)
    }

    pub(super) fn forget(&mut self, number: u64) {
        self.0.remove(&number);
    }

    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut Measurement> {
        self.0.values_mut()
    }

    /// Whether one goes on.
    pub(super) fn is_any_running(&self) -> bool {
        self.0.values().any(Measurement::is_running)
    }

    /// Why there is none of that number.
    pub(super) fn missing(number: u64) -> String {
        format!(
            "measurement {number} is not known: it never began, or was forgotten as one of more than {MOST}"
        )
    }
}
