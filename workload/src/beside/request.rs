//! What is asked of a framework's process.

use serde::Serialize;

use super::shared::{Memory, Operation, Shared};
use crate::{measure::Limits, protocol::Dtype};

#[derive(Debug, Serialize)]
pub(super) struct Request<'a> {
    operation: &'a str,
    dtype: Dtype,
    shape: &'a [u64],
    inputs: usize,
    copies: bool,
    one_thread: bool,
    fused: bool,
    paths: Vec<String>,
    out: String,
    warm_up_s: f64,
    least_s: f64,
    time_s: f64,
}

impl<'a> Request<'a> {
    pub(super) fn new(shared: &'a Shared, inputs: &[Memory], out: &Memory, limits: &Limits) -> Self {
        let Operation { name, copies, one_thread, fused } = shared.operation;
        Self {
            operation: name,
            dtype: shared.dtype,
            shape: &shared.shape,
            inputs: inputs.len(),
            copies,
            one_thread,
            fused,
            paths: inputs.iter().map(Memory::path).collect(),
            out: out.path(),
            warm_up_s: limits.warm_up.as_secs_f64(),
            least_s: limits.least.as_secs_f64(),
            time_s: limits.time.as_secs_f64(),
        }
    }
}
