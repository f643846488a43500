//! What the driver answered last.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{Answer, Question};

/// The last answers about a GPU and its MIG devices, each with its time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<Row>", into = "Vec<Row>")]
pub struct CachedAnswers {
    answers: HashMap<(Option<u32>, Question), Cached>,
}

/// MIG device's index, question, time, answer.
type Row = (Option<u32>, Question, u64, Answer);

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
    pub fn keep(&mut self, mig: Option<u32>, question: Question, at_ms: u64, answer: Answer) {
        self.answers.insert((mig, question), Cached { at_ms, answer });
    }

    /// The last answer; `None` where the question has not been asked.
    pub fn get(&self, mig: Option<u32>, question: Question) -> Option<&Cached> {
        self.answers.get(&(mig, question))
    }

    /// What has been asked about the GPU.
    pub fn questions(&self) -> impl Iterator<Item = Question> {
        self.answers.keys().filter(|(mig, _)| mig.is_none()).map(|(_, question)| *question)
    }

    /// Those that were given from this time on.
    #[must_use]
    pub fn since(&self, at_ms: u64) -> Self {
        let answers = self.answers.iter().filter(|(_, cached)| cached.at_ms >= at_ms);
        Self { answers: answers.map(|(asked, cached)| (*asked, cached.clone())).collect() }
    }

    /// Takes in newer answers, which replace the older ones to the same questions.
    pub fn update(&mut self, newer: Self) {
        self.answers.extend(newer.answers);
    }

    /// Forgets the answers to these questions about the GPU.
    pub fn forget(&mut self, is_one: impl Fn(Question) -> bool) {
        self.answers.retain(|(_, question), _| !is_one(*question));
    }

    /// Forgets what was said about MIG devices: others may stand at their places.
    pub fn forget_mig_devices(&mut self) {
        self.answers.retain(|(mig, _), _| mig.is_none());
    }
}

impl From<Vec<Row>> for CachedAnswers {
    fn from(rows: Vec<Row>) -> Self {
        let row = |(mig, question, at_ms, answer)| ((mig, question), Cached { at_ms, answer });
        Self { answers: rows.into_iter().map(row).collect() }
    }
}

impl From<CachedAnswers> for Vec<Row> {
    fn from(cached: CachedAnswers) -> Self {
        let row = |((mig, question), Cached { at_ms, answer })| (mig, question, at_ms, answer);
        cached.answers.into_iter().map(row).collect()
    }
}

/// What a collector has been answered about one GPU, for a server that answers programs which speak the driver's own
/// vocabulary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DriverAnswers {
    /// NVML's index.
    pub index: u32,
    /// All of them, rather than those since the last time.
    pub all: bool,
    /// Them.
    pub answers: CachedAnswers,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::{Code, Value};

    fn answers(rows: &[(Question, u64, i128)]) -> CachedAnswers {
        let mut answers = CachedAnswers::default();
        for (question, at_ms, number) in rows {
            answers.keep(None, *question, *at_ms, Ok(Value::number(*number)));
        }
        answers
    }

    #[test]
    fn newer_answers_replace_older_ones() {
        let mut known = answers(&[(Question::Brand, 1, 14), (Question::PowerUsage, 1, 70_000)]);
        let newer = answers(&[(Question::PowerUsage, 2, 80_000)]);
        known.update(newer.clone());
        assert_eq!(known, answers(&[(Question::Brand, 1, 14), (Question::PowerUsage, 2, 80_000)]));
        assert_eq!(known.since(2), newer);
    }

    #[test]
    fn they_come_back_from_json_as_they_were() {
        let mut known = answers(&[(Question::Field(186, 0), 1, 14)]);
        known.keep(Some(3), Question::Name, 2, Err(Code::NOT_SUPPORTED));
        let json = serde_json::to_string(&known).unwrap();
        assert_eq!(serde_json::from_str::<CachedAnswers>(&json).unwrap(), known, "{json}");
    }
}
