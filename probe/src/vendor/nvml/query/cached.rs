//! What the driver answered last.

use foldhash::HashMap;
use serde::{Deserialize, Serialize};

use super::{Answer, Query};

/// The last answers about a GPU and its MIG devices, each with its time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<Row>", into = "Vec<Row>")]
pub struct CachedAnswers {
    answers: HashMap<(Option<u32>, Query), Cached>,
}

/// MIG device's index, query, time, answer.
type Row = (Option<u32>, Query, u64, Answer);

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Cached {
    /// When the call was made.
    pub at_ms: u64,
    /// What it gave.
    pub answer: Answer,
}

impl CachedAnswers {
    /// Keeps an answer about the GPU, or about the MIG device of this index.
    pub fn keep(&mut self, mig: Option<u32>, query: Query, at_ms: u64, answer: Answer) {
        self.answers.insert((mig, query), Cached { at_ms, answer });
    }

    /// The last answer; `None` where the query has not been asked.
    pub fn get(&self, mig: Option<u32>, query: Query) -> Option<&Cached> {
        self.answers.get(&(mig, query))
    }

    /// When the newest was given; 0 where there is none.
    pub fn newest_ms(&self) -> u64 {
        self.answers
            .values()
            .map(|cached| cached.at_ms)
            .max()
            .unwrap_or(0)
    }

    /// What has been asked about the GPU.
    pub fn queries(&self) -> impl Iterator<Item = Query> {
        self.answers
            .keys()
            .filter(|(mig, _)| mig.is_none())
            .map(|(_, query)| *query)
    }

    /// Forgets the answers to these queries about the GPU.
    pub fn forget(&mut self, is_one: impl Fn(Query) -> bool) {
        self.answers.retain(|(_, query), _| !is_one(*query));
    }

    /// Forgets what was said about MIG devices: others may stand at their places.
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
