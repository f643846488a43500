//! One line of `gpumon collect`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Event, GpuDetails, Inventory, Sample, Trace};
use crate::vendor::DriverAnswers;

/// What the collector writes, one JSON object per line, told apart by `type`.
///
/// The first line is an inventory; it comes again whenever it has changed.
// One of them exists at a time, so that the size of the largest does not matter.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Record {
    /// What is there.
    Inventory(Inventory),
    /// What was read at one moment.
    Sample(Sample),
    /// What changes slowly about one GPU, every ten seconds.
    Details(GpuDetails),
    /// What the driver itself recorded of one GPU between two samples.
    Trace(Trace),
    /// What the driver answered last, call by call, when a server asks for it on behalf of a program that does as the
    /// vendor's own tools do.
    #[ts(skip)]
    #[schemars(skip)]
    Answers(DriverAnswers),
    /// What happened.
    Event(Event),
}
