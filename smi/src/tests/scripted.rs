//! A test backend with scripted answers.

use std::collections::HashMap;

use gpumon_probe::vendor::nvml::query::{
    Answer, Code, Query, QueryBackend, Subject, SystemQuery, Value,
};

/// A backend that returns scripted answers. All other queries return “not supported”.
#[derive(Default)]
pub(crate) struct ScriptedBackend {
    system: HashMap<SystemQuery, Answer>,
    about: HashMap<(Subject, Query), Answer>,
    gpm: HashMap<Subject, HashMap<u32, f64>>,
    is_quick: bool,
}

impl ScriptedBackend {
    /// Makes the backend report that its answers come from memory, as recorded answers do.
    pub(crate) fn with_quick_answers(mut self) -> Self {
        self.is_quick = true;
        self
    }

    pub(crate) fn with_system_answer(mut self, query: SystemQuery, answer: Answer) -> Self {
        self.system.insert(query, answer);
        self
    }

    pub(crate) fn with_numbers(self, gpu: u32, query: Query, numbers: &[i128]) -> Self {
        self.with_answer(
            Subject::from_gpu(gpu),
            query,
            Ok(Value::Numbers(numbers.to_vec())),
        )
    }

    pub(crate) fn with_text(self, gpu: u32, query: Query, text: &str) -> Self {
        self.with_answer(
            Subject::from_gpu(gpu),
            query,
            Ok(Value::Text(text.to_owned())),
        )
    }

    /// Adds GPM metrics, given as pairs of an ID and a value. All other metrics are unavailable.
    pub(crate) fn with_gpm_metrics(mut self, subject: Subject, metrics: &[(u32, f64)]) -> Self {
        self.gpm.insert(subject, metrics.iter().copied().collect());
        self
    }

    pub(crate) fn with_answer(mut self, subject: Subject, query: Query, answer: Answer) -> Self {
        self.about.insert((subject, query), answer);
        self
    }
}

impl QueryBackend for ScriptedBackend {
    fn answer_system(&self, query: SystemQuery) -> Answer {
        self.system
            .get(&query)
            .cloned()
            .unwrap_or(Err(Code::NOT_SUPPORTED))
    }

    fn answer_query(&self, subject: Subject, query: Query) -> Answer {
        self.about
            .get(&(subject, query))
            .cloned()
            .unwrap_or(Err(Code::NOT_SUPPORTED))
    }

    fn answers_from_memory(&self) -> bool {
        self.is_quick
    }

    fn answer_gpm(&self, subject: Subject, metrics: &[u32]) -> Answer {
        let known = self.gpm.get(&subject).ok_or(Code::NOT_READY)?;
        Ok(Value::Reals(
            metrics
                .iter()
                .map(|metric| known.get(metric).copied().unwrap_or(f64::NAN))
                .collect(),
        ))
    }
}
