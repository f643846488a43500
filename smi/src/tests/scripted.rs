//! A test backend with scripted answers.

use std::collections::HashMap;

use gpumon_probe::vendor::nvml::query::{
    Answer, Code, Query, QueryBackend, Subject, SystemQuery, Value,
};

/// A backend with listed answers. It returns “not supported” for all other queries.
#[derive(Default)]
pub(crate) struct ScriptedBackend {
    system: HashMap<SystemQuery, Answer>,
    about: HashMap<(Subject, Query), Answer>,
    gpm: HashMap<Subject, HashMap<u32, f64>>,
    is_quick: bool,
}

impl ScriptedBackend {
    /// Makes the backend report that it answers from memory, as recordings do.
    pub(crate) fn quick(mut self) -> Self {
        self.is_quick = true;
        self
    }

    pub(crate) fn system(mut self, query: SystemQuery, answer: Answer) -> Self {
        self.system.insert(query, answer);
        self
    }

    pub(crate) fn numbers(self, gpu: u32, query: Query, numbers: &[i128]) -> Self {
        self.answer(
            Subject::gpu(gpu),
            query,
            Ok(Value::Numbers(numbers.to_vec())),
        )
    }

    pub(crate) fn text(self, gpu: u32, query: Query, text: &str) -> Self {
        self.answer(Subject::gpu(gpu), query, Ok(Value::Text(text.to_owned())))
    }

    /// Adds GPM metrics by their ID. All other metrics are unavailable.
    pub(crate) fn gpm(mut self, subject: Subject, metrics: &[(u32, f64)]) -> Self {
        self.gpm.insert(subject, metrics.iter().copied().collect());
        self
    }

    pub(crate) fn answer(mut self, subject: Subject, query: Query, answer: Answer) -> Self {
        self.about.insert((subject, query), answer);
        self
    }
}

impl QueryBackend for ScriptedBackend {
    fn system(&self, query: SystemQuery) -> Answer {
        self.system
            .get(&query)
            .cloned()
            .unwrap_or(Err(Code::NOT_SUPPORTED))
    }

    fn about(&self, subject: Subject, query: Query) -> Answer {
        self.about
            .get(&(subject, query))
            .cloned()
            .unwrap_or(Err(Code::NOT_SUPPORTED))
    }

    fn is_quick(&self) -> bool {
        self.is_quick
    }

    fn gpm(&self, subject: Subject, metrics: &[u32]) -> Answer {
        let known = self.gpm.get(&subject).ok_or(Code::NOT_READY)?;
        Ok(Value::Reals(
            metrics
                .iter()
                .map(|metric| known.get(metric).copied().unwrap_or(f64::NAN))
                .collect(),
        ))
    }
}
