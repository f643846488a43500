//! A cache of the driver's latest answers.

use foldhash::HashMap;
use serde::{Deserialize, Serialize};

use super::{Answer, Query};

/// The latest answers about a GPU and its MIG devices, each with its time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<Row>", into = "Vec<Row>")]
pub struct CachedAnswers {
    answers: HashMap<(Option<u32>, Query), Cached>,
}

/// The index of a MIG device, the query, the time in milliseconds since 1970, and the answer.
type Row = (Option<u32>, Query, u64, Answer);

/// A cached answer with its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Cached {
    /// The time of the call, in milliseconds since 1970.
    pub at_ms: u64,
    pub answer: Answer,
}

impl CachedAnswers {
    /// Stores an answer about the GPU, or about the MIG device with this index.
    pub fn keep(&mut self, mig: Option<u32>, query: Query, at_ms: u64, answer: Answer) {
        self.answers.insert((mig, query), Cached { at_ms, answer });
    }

    /// Returns the latest answer, or `None` if the query was not asked.
    pub fn get(&self, mig: Option<u32>, query: Query) -> Option<&Cached> {
        self.answers.get(&(mig, query))
    }

    /// Returns the time of the latest answer, or 0 if there is none.
    pub fn newest_ms(&self) -> u64 {
        self.answers
            .values()
            .map(|cached| cached.at_ms)
            .max()
            .unwrap_or(0)
    }

    /// Returns all queries that were asked about the whole GPU.
    pub fn queries(&self) -> impl Iterator<Item = Query> {
        self.answers
            .keys()
            .filter(|(mig, _)| mig.is_none())
            .map(|(_, query)| *query)
    }

    /// Removes the answers to these queries.
    pub fn forget(&mut self, is_one: impl Fn(Query) -> bool) {
        self.answers.retain(|(_, query), _| !is_one(*query));
    }

    /// Removes the answers about MIG devices, because other devices may have their indices now.
    pub fn forget_mig_devices(&mut self) {
        self.answers.retain(|(mig, _), _| mig.is_none());
    }
}

impl From<Vec<Row>> for CachedAnswers {
    fn from(rows: Vec<Row>) -> Self {
        let row = |(mig, query, at_ms, answer)| ((mig, query), Cached { at_ms, answer });
        Self {
            answers: rows.into_iter().map(row).collect(),
        }
    }
}

impl From<CachedAnswers> for Vec<Row> {
    fn from(cached: CachedAnswers) -> Self {
        let row = |((mig, query), Cached { at_ms, answer })| (mig, query, at_ms, answer);
        cached.answers.into_iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::nvml::query::{Code, Value};

    #[test]
    fn they_come_back_from_json_as_they_were() {
        let mut known = CachedAnswers::default();
        known.keep(None, Query::Field(186, 0), 1, Ok(Value::number(14)));
        known.keep(Some(3), Query::Name, 2, Err(Code::NOT_SUPPORTED));
        let json = serde_json::to_string(&known).unwrap();
        assert_eq!(
            serde_json::from_str::<CachedAnswers>(&json).unwrap(),
            known,
            "{json}"
        );
    }
}
