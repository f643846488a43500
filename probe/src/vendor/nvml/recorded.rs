//! Answers that other programs get from a collector's records, without calls to the driver.
//!
//! If the collector has not run a query, there is no answer to it here. The caller can then query
//! the driver.

use std::collections::HashMap;

use super::{
    query::{Answer, CachedAnswer, CachedAnswers, Code, Query, Subject, SystemQuery, Value},
    schedule::{is_answer_shared, is_constant_while_open},
};
use crate::{
    bounded,
    model::{Absence, Driver, Health, Platform, Reading, Vendor},
    vendor::{GpuAnswers, VendorAnswers},
};

/// The answers that a collector has recorded, as of one moment.
pub struct RecordedAnswers {
    platform: Platform,
    gpus: HashMap<u32, RecordedGpu>,
}

struct RecordedGpu {
    health: Health,
    answers: CachedAnswers,
    /// The time of the most recent answer, in milliseconds since 1970.
    newest_ms: u64,
}

/// The maximum difference between the time of an answer and that of the most recent answer, for
/// answers that can change. While somebody is watching, no answer gets this old.
const MAX_AGE_MS: u64 = 15_000;

impl RecordedAnswers {
    /// Creates a set of recorded answers about all GPUs.
    pub fn new(platform: Platform, gpus: Vec<GpuAnswers>) -> Self {
        let gpus = gpus.into_iter().map(|gpu| {
            let VendorAnswers(answers) = gpu.answers;
            let recorded = RecordedGpu {
                health: gpu.health,
                newest_ms: answers.newest_ms(),
                answers,
            };
            (gpu.index, recorded)
        });
        Self {
            platform,
            gpus: gpus.collect(),
        }
    }

    /// Answers a query about the machine, or returns `None` if there is no recorded answer.
    pub fn answer_system(&self, query: SystemQuery) -> Option<Answer> {
        match query {
            SystemQuery::DriverVersion => Some(text_answer(&self.driver()?.version)),
            SystemQuery::NvmlVersion => Some(text_answer(&self.driver()?.library_version)),
            SystemQuery::CudaVersion => {
                let (major, minor) = self.driver()?.cuda_version.value()?.split_once('.')?;
                let (major, minor): (i32, i32) = (major.parse().ok()?, minor.parse().ok()?);
                Some(Ok(Value::from_number(
                    major
                        .checked_mul(1000)?
                        .checked_add(minor.checked_mul(10)?)?,
                )))
            }
            SystemQuery::DeviceCount => Some(Ok(Value::Numbers(vec![self.gpus.len() as i128]))),
            SystemQuery::ProcessName(pid) => Some(process_name(pid)),
            // Drivers that do not host virtual GPUs have none of these capabilities. For other
            // drivers, there is no recorded answer.
            SystemQuery::VgpuDriverCapability(_) => {
                let mode = |own: &RecordedGpu| {
                    own.answers
                        .get(None, Query::HostVgpuMode)
                        .map(|own| own.answer.is_ok())
                };
                self.gpus
                    .values()
                    .all(|own| mode(own) == Some(false))
                    .then_some(Err(Code::NOT_SUPPORTED))
            }
            _ => None,
        }
    }

    fn driver(&self) -> Option<&Driver> {
        self.platform.find_driver(Vendor::Nvidia)
    }

    /// Returns `true` if the GPUs are simulated.
    pub fn is_simulated(&self) -> bool {
        self.platform.is_simulated
    }

    /// Returns the indices of the GPUs whose driver calls hang.
    pub fn hung_gpus(&self) -> Vec<u32> {
        let hung = self
            .gpus
            .iter()
            .filter(|(_, own)| matches!(own.health, Health::Hung { .. }));
        hung.map(|(index, _)| *index).collect()
    }

    /// Answers a query about a GPU or a MIG device, or returns `None` if there is no recorded
    /// answer.
    pub fn answer_query(&self, subject: Subject, query: Query) -> Option<Answer> {
        let gpu = self.gpus.get(&subject.gpu)?;
        let is_recent = |own: &&CachedAnswer| {
            own.answer.is_err()
                || is_constant_while_open(query)
                || own.at_ms.saturating_add(MAX_AGE_MS) >= gpu.newest_ms
        };
        let cached = || {
            gpu.answers
                .get(subject.mig, query)
                .filter(is_recent)
                .map(|own| own.answer.clone())
        };
        let lasting =
            || cached().filter(|_| subject.mig.is_none() && is_constant_while_open(query));
        match gpu.health {
            Health::Lost { .. } => Some(Err(Code::GPU_IS_LOST)),
            // The recorded values are outdated, but calling the driver would hang.
            Health::Hung { .. } => Some(lasting().unwrap_or(Err(Code::TIMEOUT))),
            // If there is no recorded value, the caller calls the driver, although this wakes the
            // GPU. `nvidia-smi` wakes it as well.
            Health::Asleep { .. } => lasting(),
            // The recorded values are outdated. The caller must query the driver, which returns the
            // reason for the failure.
            Health::Failed { .. } => None,
            // No NVML function answers this query, so calling the driver would be pointless.
            _ if query == Query::GpuPartNumber => Some(Err(Code::FUNCTION_NOT_FOUND)),
            Health::Ok => cached().filter(|_| subject.mig.is_some() || is_answer_shared(query)),
        }
    }
}

/// Returns the first word of the process's command line. NVML's function also returns this word.
fn process_name(pid: u32) -> Answer {
    let file = format!("/proc/{pid}/cmdline");
    let line = bounded::read(file, bounded::COMMAND_LINE_LIMIT).map_err(|_| Code::NOT_FOUND)?;
    let name = line.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(Value::Text(String::from_utf8_lossy(name).into_owned()))
}

fn text_answer(reading: &Reading<String>) -> Answer {
    match reading {
        Reading::Now(text) | Reading::Earlier { value: text, .. } => Ok(Value::Text(text.clone())),
        Reading::Absent(Absence::DriverError { code }) => Err(Code(*code)),
        Reading::Absent(_) => Err(Code::NOT_SUPPORTED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_recorded(health: Health) -> RecordedAnswers {
        let mut answers = CachedAnswers::default();
        let known = [
            (Query::Name, Value::Text("NVIDIA H200".to_owned())),
            (Query::Brand, Value::from_number(14)),
            (Query::UtilizationRates, Value::Numbers(vec![100, 20])),
            (Query::EncoderStats, Value::from_number(1)),
            (Query::NvLinkVersion(0), Value::from_number(6)),
        ];
        for (query, value) in known {
            answers.store_answer(None, query, 1, Ok(value));
        }
        let version = || Reading::Now("580.159.04".to_owned());
        let platform = Platform {
            is_simulated: false,
            drivers: vec![Driver {
                vendor: Vendor::Nvidia,
                version: version(),
                library_version: version(),
                cuda_version: Reading::Now("13.0".to_owned()),
            }],
        };
        RecordedAnswers::new(
            platform,
            vec![GpuAnswers {
                index: 0,
                health,
                answers: answers.into(),
            }],
        )
    }

    #[test]
    fn follow_up_answers_are_not_recorded() {
        let own = make_recorded(Health::Ok);
        let ask = |query| own.answer_query(Subject::from_gpu(0), query);
        assert_eq!(ask(Query::EncoderStats), Some(Ok(Value::from_number(1))));
        assert_eq!(ask(Query::BridgeChips), None, "it was not asked");
        assert_eq!(
            ask(Query::NvLinkVersion(0)),
            None,
            "another answer raised it"
        );
        assert_eq!(
            own.answer_system(SystemQuery::CudaVersion),
            Some(Ok(Value::from_number(13_000)))
        );
        assert_eq!(own.answer_query(Subject::from_gpu(1), Query::Name), None);
    }

    #[test]
    fn old_answers_expire_unless_constant() {
        let mut answers = CachedAnswers::default();
        answers.store_answer(
            None,
            Query::UtilizationRates,
            60_000,
            Ok(Value::from_number(3)),
        );
        answers.store_answer(
            None,
            Query::PowerLimit,
            10_000,
            Ok(Value::from_number(700_000)),
        );
        answers.store_answer(None, Query::DisplayMode, 50_000, Ok(Value::from_number(0)));
        answers.store_answer(None, Query::FanSpeed, 10_000, Err(Code::NOT_SUPPORTED));
        answers.store_answer(
            None,
            Query::Name,
            1,
            Ok(Value::Text("NVIDIA H200".to_owned())),
        );
        let mut own = make_recorded(Health::Ok);
        own.gpus.insert(
            0,
            RecordedGpu {
                health: Health::Ok,
                newest_ms: answers.newest_ms(),
                answers,
            },
        );
        let is_reported = |query| own.answer_query(Subject::from_gpu(0), query).is_some();
        assert!(
            !is_reported(Query::PowerLimit),
            "a setting of fifty seconds ago"
        );
        let reported = [
            Query::UtilizationRates,
            Query::DisplayMode,
            Query::FanSpeed,
            Query::Name,
        ];
        assert!(reported.into_iter().all(is_reported));
    }

    #[test]
    fn hung_gpu_answers_only_constant_queries() {
        let own = make_recorded(Health::Hung { since_ms: 1 });
        let ask = |query| own.answer_query(Subject::from_gpu(0), query);
        assert!(matches!(ask(Query::Name), Some(Ok(_))));
        assert_eq!(ask(Query::Brand), Some(Ok(Value::from_number(14))));
        for query in [
            Query::UtilizationRates,
            Query::EncoderStats,
            Query::BridgeChips,
        ] {
            assert_eq!(ask(query), Some(Err(Code::TIMEOUT)), "{query:?}");
        }
        assert_eq!(
            own.answer_query(Subject::from_mig(0, 0), Query::Name),
            Some(Err(Code::TIMEOUT))
        );
    }

    #[test]
    fn queries_about_failed_gpu_are_not_answered() {
        let (reason, meaning, advice) = (
            Absence::DriverError { code: 999 },
            String::new(),
            String::new(),
        );
        let own = make_recorded(Health::Failed {
            since_ms: 1,
            reason,
            meaning,
            advice,
        });
        for query in [Query::Name, Query::UtilizationRates] {
            assert_eq!(
                own.answer_query(Subject::from_gpu(0), query),
                None,
                "the value from before is old: {query:?}"
            );
        }
    }

    #[test]
    fn queries_about_sleeping_gpu_are_not_answered() {
        let own = make_recorded(Health::Asleep { since_ms: 1 });
        assert!(matches!(
            own.answer_query(Subject::from_gpu(0), Query::Name),
            Some(Ok(_))
        ));
        assert_eq!(
            own.answer_query(Subject::from_gpu(0), Query::UtilizationRates),
            None
        );
        let lost = make_recorded(Health::Lost { since_ms: 1 });
        assert_eq!(
            lost.answer_query(Subject::from_gpu(0), Query::Name),
            Some(Err(Code::GPU_IS_LOST))
        );
    }
}
