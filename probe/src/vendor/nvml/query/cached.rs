//! A cache for the driver's latest answers.

use foldhash::HashMap;
use serde::{Deserialize, Serialize};

use super::{Answer, Query};

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
