//! The answers to NVML queries, which are the results of NVML calls, and a cache of the latest
//! answers.

use foldhash::HashMap;
use serde::{Deserialize, Serialize};

use super::Query;

/// The value that an NVML call returned, or the return code of a failed call.
pub type Answer = Result<Value, Code>;

/// The value that an NVML call returned, in NVML's units. Each query's documentation states the
/// type and the order of the numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// Integers of any type: the call's results in order, or the items of a list.
    Numbers(Vec<i128>),
    /// Floating-point numbers.
    Reals(Vec<f64>),
    Text(String),
}

/// An `nvmlReturn_t` other than `NVML_SUCCESS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Code(pub u32);

macro_rules! codes {
    ($($name:ident = $code:literal;)*) => {$(
        #[doc = concat!("`NVML_ERROR_", stringify!($name), "`.")]
        pub const $name: Self = Self($code);
    )*};
}

impl Code {
    codes! {
        UNINITIALIZED = 1;
        INVALID_ARGUMENT = 2;
        NOT_SUPPORTED = 3;
        NO_PERMISSION = 4;
        NOT_FOUND = 6;
        INSUFFICIENT_POWER = 8;
        DRIVER_NOT_LOADED = 9;
        TIMEOUT = 10;
        IRQ_ISSUE = 11;
        // The library is too old to have the query's function.
        FUNCTION_NOT_FOUND = 13;
        CORRUPTED_INFOROM = 14;
        GPU_IS_LOST = 15;
        RESET_REQUIRED = 16;
        // The container's device cgroup blocks the GPU.
        OPERATING_SYSTEM = 17;
        NO_DATA = 21;
        // The driver expects another version of the structure.
        ARGUMENT_VERSION_MISMATCH = 25;
        DEPRECATED = 26;
        NOT_READY = 27;
        UNKNOWN = 999;
    }

    /// The library and the kernel module have different versions
    /// (`NVML_ERROR_LIB_RM_VERSION_MISMATCH`).
    pub const VERSION_MISMATCH: Self = Self(18);
}

impl Value {
    /// Creates a value that consists of one number.
    pub fn from_number(number: impl Into<i128>) -> Self {
        Self::Numbers(vec![number.into()])
    }

    /// Returns the integers, or an empty slice if the value has another type.
    pub fn numbers(&self) -> &[i128] {
        if let Self::Numbers(numbers) = self {
            numbers
        } else {
            &[]
        }
    }

    /// Returns the integer at position `place`, or `None` if there is no such number.
    pub fn number_at(&self, place: usize) -> Option<i128> {
        self.numbers().get(place).copied()
    }

    /// Returns the first number as a floating-point number, or `None` if there is none.
    pub fn first_as_float(&self) -> Option<f64> {
        match self {
            Self::Reals(reals) => reals.first().copied(),
            value => value.number_at(0).map(|number| number as f64),
        }
    }

    /// Returns the value's text, or `None` if the value has another type.
    pub fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self {
            Some(text)
        } else {
            None
        }
    }
}

/// The latest answers about a GPU and its MIG devices, with the time of each answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<Row>", into = "Vec<Row>")]
pub struct CachedAnswers {
    answers: HashMap<(Option<u32>, Query), CachedAnswer>,
}

/// A cached answer in serialized form: the index of the MIG device, if any, the query, the time in
/// milliseconds since 1970, and the answer.
type Row = (Option<u32>, Query, u64, Answer);

/// An answer and the time at which the driver gave it.
#[derive(Debug, Clone, PartialEq)]
pub struct CachedAnswer {
    /// The time of the call, in milliseconds since 1970.
    pub at_ms: u64,
    pub answer: Answer,
}

impl CachedAnswers {
    /// Stores an answer about the GPU, or about the MIG device with the index `mig`.
    pub fn store_answer(&mut self, mig: Option<u32>, query: Query, at_ms: u64, answer: Answer) {
        self.answers
            .insert((mig, query), CachedAnswer { at_ms, answer });
    }

    /// Returns the latest answer to `query`, or `None` if there is none.
    pub fn get(&self, mig: Option<u32>, query: Query) -> Option<&CachedAnswer> {
        self.answers.get(&(mig, query))
    }

    /// Returns the time of the latest answer in milliseconds since 1970, or 0 if there are no
    /// answers.
    pub fn newest_ms(&self) -> u64 {
        self.answers
            .values()
            .map(|cached| cached.at_ms)
            .max()
            .unwrap_or(0)
    }

    /// Returns all queries that have an answer about the whole GPU.
    pub fn queries(&self) -> impl Iterator<Item = Query> {
        self.answers
            .keys()
            .filter(|(mig, _)| mig.is_none())
            .map(|(_, query)| *query)
    }

    /// Removes the answers to the queries for which `is_one` returns `true`.
    pub fn forget_answers(&mut self, is_one: impl Fn(Query) -> bool) {
        self.answers.retain(|(_, query), _| !is_one(*query));
    }

    /// Removes all answers about MIG devices, because other devices may have the same indices now.
    pub fn forget_mig_devices(&mut self) {
        self.answers.retain(|(mig, _), _| mig.is_none());
    }
}

impl From<Vec<Row>> for CachedAnswers {
    fn from(rows: Vec<Row>) -> Self {
        let row = |(mig, query, at_ms, answer)| ((mig, query), CachedAnswer { at_ms, answer });
        Self {
            answers: rows.into_iter().map(row).collect(),
        }
    }
}

impl From<CachedAnswers> for Vec<Row> {
    fn from(cached: CachedAnswers) -> Self {
        let row = |((mig, query), CachedAnswer { at_ms, answer })| (mig, query, at_ms, answer);
        cached.answers.into_iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_survives_json_round_trip() {
        for answer in [
            Ok(Value::Numbers(vec![0, -8, i128::from(u64::MAX)])),
            Ok(Value::Numbers(Vec::new())),
            Ok(Value::Text("96.00.A5.00.1A".to_owned())),
            Ok(Value::Reals(vec![12.5])),
            Err(Code::NOT_SUPPORTED),
        ] {
            let json = serde_json::to_string(&answer).unwrap();
            assert_eq!(
                serde_json::from_str::<Answer>(&json).unwrap(),
                answer,
                "{json}"
            );
        }
    }
}

#[cfg(test)]
mod cached_tests {
    use super::*;
    use crate::vendor::nvml::query::{Code, Value};

    #[test]
    fn cached_answers_survive_json_round_trip() {
        let mut known = CachedAnswers::default();
        known.store_answer(None, Query::Field(186, 0), 1, Ok(Value::from_number(14)));
        known.store_answer(Some(3), Query::Name, 2, Err(Code::NOT_SUPPORTED));
        let json = serde_json::to_string(&known).unwrap();
        assert_eq!(
            serde_json::from_str::<CachedAnswers>(&json).unwrap(),
            known,
            "{json}"
        );
    }
}
