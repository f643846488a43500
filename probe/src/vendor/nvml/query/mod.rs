//! The driver's native queries. Each query corresponds to one NVML call, and its answer is the
//! call's result in NVML's units.
//!
//! The model in `crate::model` is designed for monitoring: it combines calls, converts units, and
//! gives reasons for absent values. In contrast, `gpumon smi` needs the driver's exact values and
//! should make no unnecessary calls. A [`QueryBackend`] answers these queries, using NVML itself or
//! the records of a running server.

mod answer;
mod table;

use serde::{Deserialize, Serialize};

pub use answer::{Answer, CachedAnswer, CachedAnswers, Code, Value};

/// Defines the enum of all queries in a table. Each query's documentation includes the names of its
/// NVML functions.
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

// Each table adds its rows after the colon.
crate::nvml_queries! {
    define
    /// A query about a GPU or a MIG device.
    Query:
}
crate::nvml_system_queries! {
    define
    /// A query about the machine.
    SystemQuery:
}

/// The GPU or MIG device that a query is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Subject {
    /// The GPU's NVML index.
    pub gpu: u32,
    /// The NVML index of the MIG device within the GPU, or `None` for the whole GPU.
    pub mig: Option<u32>,
}

impl Subject {
    /// Creates a subject that refers to a whole GPU.
    pub const fn from_gpu(index: u32) -> Self {
        Self {
            gpu: index,
            mig: None,
        }
    }

    /// Creates a subject that refers to a MIG device.
    pub const fn from_mig(gpu: u32, device: u32) -> Self {
        Self {
            gpu,
            mig: Some(device),
        }
    }
}

/// A source of answers to queries. Any thread may run queries. A query may have to wait for another
/// thread's query about the same GPU.
pub trait QueryBackend: Sync {
    /// Runs a query about the machine.
    ///
    /// # Errors
    /// Returns the `nvmlReturn_t` of the call.
    fn answer_system(&self, query: SystemQuery) -> Answer;

    /// Runs a query about a GPU or MIG device.
    ///
    /// # Errors
    /// Returns the `nvmlReturn_t` of the call, or of opening the GPU.
    fn answer_query(&self, subject: Subject, query: Query) -> Answer;

    /// Runs several queries about one GPU or MIG device, and returns the answers in the same order.
    /// Some queries may be combined into one call.
    fn answer_queries(&self, subject: Subject, queries: &[Query]) -> Vec<Answer> {
        queries
            .iter()
            .map(|query| self.answer_query(subject, *query))
            .collect()
    }

    /// Returns the GPM metrics for the time since the last call for the same subject, in the order
    /// of `metrics` (`nvmlGpmMetricId_t`). The answer is [`Value::Reals`], with NaN for unavailable
    /// metrics. The first call returns [`Code::NOT_READY`], because there is no earlier sample.
    ///
    /// # Errors
    /// Returns the `nvmlReturn_t` of the call.
    fn answer_gpm(&self, subject: Subject, metrics: &[u32]) -> Answer;

    /// Returns `true` if answers come from memory, so that running queries on several threads would
    /// not be faster.
    fn answers_from_memory(&self) -> bool {
        false
    }

    /// Discards answers that may be outdated. Programs that repeat their queries call this function
    /// between rounds.
    fn forget_outdated_answers(&self) {}
}
