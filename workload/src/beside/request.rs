//! What is asked of a framework's process.

use serde::Serialize;

use super::shared::{HandedOver, Memory, Operation};
use crate::measure::{FEWEST, Limits, MOST, STEADY};

#[derive(Debug, Serialize)]
pub(super) struct Request<'a> {
    #[serde(flatten)]
    operation: &'a Operation,
    inputs: Vec<String>,
    /// Where the last result goes.
    out: String,
    /// Where the times go, in us, as numbers of 64 bits.
    times: String,
    warm_up_s: f64,
    least_s: f64,
    time_s: f64,
    fewest: usize,
    most: usize,
    steady: f64,
}

impl<'a> Request<'a> {
    pub(super) fn new(of: &'a HandedOver, out: &Memory, times: &Memory, limits: &Limits) -> Self {
        Self {
            operation: &of.operation,
            inputs: of.inputs.iter().map(Memory::path).collect(),
            out: out.path(),
            times: times.path(),
            warm_up_s: limits.warm_up.as_secs_f64(),
            least_s: limits.least.as_secs_f64(),
            time_s: limits.time.as_secs_f64(),
            fewest: FEWEST,
            most: MOST,
            steady: STEADY,
        }
    }
}
