//! The driver's own vocabulary: one query is one NVML call, its answer what the call gave, in
//! NVML's units.
//!
//! The model beside it is made for watching: it joins calls, changes units and gives reasons. A
//! program that has to say word for word what `nvidia-smi` says needs what the driver said, and no
//! call more than it shows. [`QueryBackend`] is who answers: NVML itself, or what a running server
//! has read.

mod answer;
mod cached;
mod table;

pub use answer::{Answer, Code, Value};
pub use cached::{Cached, CachedAnswers};

use serde::{Deserialize, Serialize};

/// Defines the queries of a table, each with the names of its functions in its documentation.
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

/// What a query is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Subject {
    /// The GPU, by NVML's index.
    pub gpu: u32,
    /// Its MIG device, by NVML's index within the GPU; `None` for the whole GPU.
    pub mig: Option<u32>,
}

impl Subject {
    /// A whole GPU.
    pub const fn gpu(index: u32) -> Self {
        Self {
            gpu: index,
            mig: None,
        }
    }

    /// A MIG device of a GPU.
    pub const fn mig(gpu: u32, device: u32) -> Self {
        Self {
            gpu,
            mig: Some(device),
        }
    }
}

/// Who answers. Every thread may ask; two queries about one GPU may wait for each other.
pub trait QueryBackend: Sync {
    /// Asks about the machine.
    ///
    /// # Errors
    /// The `nvmlReturn_t` of the call.
    fn system(&self, query: SystemQuery) -> Answer;

    /// Asks about a GPU or a MIG device.
    ///
    /// # Errors
    /// The `nvmlReturn_t` of the call, or of opening the GPU.
    fn about(&self, subject: Subject, query: Query) -> Answer;

    /// Asks several queries about one GPU, some of which may be one call. The answers are in the
    /// order of the queries.
    fn each(&self, subject: Subject, queries: &[Query]) -> Vec<Answer> {
        queries
            .iter()
            .map(|query| self.about(subject, *query))
            .collect()
    }

    /// What GPM counted since the last time this was called for the same subject, metric by metric
    /// (`nvmlGpmMetricId_t`): [`Value::Reals`] with a NaN for each metric that is not to be had.
    /// The first time there is nothing to compare with, and the answer is [`Code::NOT_READY`].
    ///
    /// # Errors
    /// The `nvmlReturn_t` of the call.
    fn gpm(&self, subject: Subject, metrics: &[u32]) -> Answer;

    /// Whether answers come from memory, so that asking in several threads gains nothing.
    fn is_quick(&self) -> bool {
        false
    }

    /// To be called between two rounds of a loop: who answers forgets what may have changed since.
    fn forget(&self) {}
}
