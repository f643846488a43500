//! The driver's native queries. Each query is one NVML call, and its answer is the call's result in
//! NVML's units.
//!
//! The model in `crate::model` is made for monitoring: it combines calls, converts units and gives
//! reasons for absent values. `gpumon smi`, however, needs the driver's exact values, and should
//! make no unnecessary calls. A [`QueryBackend`] answers these queries: NVML itself, or the records
//! of a running server.

mod answer;
mod cached;
mod table;

pub use answer::{Answer, Code, Value};
pub use cached::{Cached, CachedAnswers};

use serde::{Deserialize, Serialize};

/// Defines the enum of all queries in a table. The documentation of each query includes the names
/// of its functions.
macro_rules! define {
    (
        $(#[$meta:meta])* $enum:ident:
        $(
            $(#[$doc:meta])*
            $query:ident $(($($argument:ident: $kind:ty),+))?
            $(: $($shape:ident $(<$of:ty>)? = $symbol:ident)|+)? $(=> $method:ident)?
            $(, $attribute:ident $($cost:literal)? $(for $each:expr)?)*;
        )*
    ) => {
        $(#[$meta])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum $enum {
            $(
                $(#[$doc])*
                $($(#[doc = concat!("`", stringify!($symbol), "`.")])+)?
                $query $(($($kind),+))?,
            )*
        }
    };
}

macro_rules! define_query {
    ($($rows:tt)*) => {
        define! {
            /// A query about a GPU or a MIG device.
            Query: $($rows)*
        }
    };
}

macro_rules! define_system_query {
    ($($rows:tt)*) => {
        define! {
            /// A query about the machine.
            SystemQuery: $($rows)*
        }
    };
}

crate::nvml_queries! { define_query }
crate::nvml_system_queries! { define_system_query }

/// The GPU or MIG device of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Subject {
    /// NVML's index of the GPU.
    pub gpu: u32,
    /// NVML's index of the MIG device within the GPU, or `None` for the whole GPU.
    pub mig: Option<u32>,
}

impl Subject {
    /// Refers to a whole GPU.
    pub const fn gpu(index: u32) -> Self {
        Self {
            gpu: index,
            mig: None,
        }
    }

    /// Refers to a MIG device of a GPU.
    pub const fn mig(gpu: u32, device: u32) -> Self {
        Self {
            gpu,
            mig: Some(device),
        }
    }
}

/// A source of answers to queries. Any thread may ask, but queries about the same GPU may wait for
/// each other.
pub trait QueryBackend: Sync {
    /// Answers a query about the machine.
    ///
    /// # Errors
    /// Returns the `nvmlReturn_t` of the call.
    fn system(&self, query: SystemQuery) -> Answer;

    /// Answers a query about a GPU or a MIG device.
    ///
    /// # Errors
    /// Returns the `nvmlReturn_t` of the call, or of opening the GPU.
    fn about(&self, subject: Subject, query: Query) -> Answer;

    /// Answers several queries about one GPU, in their order. Some of them may be combined into one
    /// call.
    fn each(&self, subject: Subject, queries: &[Query]) -> Vec<Answer> {
        queries
            .iter()
            .map(|query| self.about(subject, *query))
            .collect()
    }

    /// Returns GPM's values since the last call for the same subject, in the order of `metrics`
    /// (`nvmlGpmMetricId_t`). The answer is [`Value::Reals`], with NaN for unavailable metrics. The
    /// first call returns [`Code::NOT_READY`], because there is no earlier sample.
    ///
    /// # Errors
    /// Returns the `nvmlReturn_t` of the call.
    fn gpm(&self, subject: Subject, metrics: &[u32]) -> Answer;

    /// Returns `true` if answers come from memory, so that asking on several threads gains nothing.
    fn is_quick(&self) -> bool {
        false
    }

    /// Discards answers that may be outdated. Programs that repeat their queries call this between
    /// two rounds.
    fn forget(&self) {}
}
