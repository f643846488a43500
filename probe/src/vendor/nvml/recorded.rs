//! Answers for other programs from a collector's records, without asking the driver.
//!
//! Queries that the collector did not ask have no answer here, so that the caller can ask the
//! driver.

use std::{collections::HashMap, path::PathBuf};

use super::lanes::{is_lasting, is_recorded};
use crate::{
    bounded,
    model::{Absence, Driver, Health, Platform, Reading, Vendor},
    vendor::nvml::query::{
        Answer, Cached, CachedAnswers, Code, Query, Subject, SystemQuery, Value,
    },
    vendor::{GpuAnswers, VendorAnswers},
};

/// The recorded answers of one moment.
pub struct Recorded {
    platform: Platform,
    gpus: HashMap<u32, RecordedGpu>,
    proc_root: PathBuf,
}

struct RecordedGpu {
    health: Health,
    answers: CachedAnswers,
    /// The time of the latest answer, in milliseconds since 1970.
    newest_ms: u64,
}

/// The maximum age of an answer that can change, relative to the latest answer. While somebody
/// watches, no answer gets this old.
const LONGEST_AGE_MS: u64 = 15_000;

impl Recorded {
    /// Combines the recorded answers of all GPUs.
    pub fn new(platform: Platform, gpus: Vec<GpuAnswers>) -> Self {
        let gpus = gpus.into_iter().map(
            |GpuAnswers {
                 index,
                 health,
                 answers: VendorAnswers(answers),
             }| {
                let newest_ms = answers.newest_ms();
                (
                    index,
                    RecordedGpu {
                        health,
                        answers,
                        newest_ms,
                    },
                )
            },
        );
        Self {
            platform,
            gpus: gpus.collect(),
            proc_root: "/proc".into(),
        }
    }

    /// Answers a query about the machine. Returns `None` if the answer is not recorded.
    pub fn system(&self, query: SystemQuery) -> Option<Answer> {
        match query {
            SystemQuery::DriverVersion => Some(text(&self.driver()?.version)),
            SystemQuery::NvmlVersion => Some(text(&self.driver()?.library_version)),
            SystemQuery::CudaVersion => {
                let (major, minor) = self.driver()?.cuda_version.value()?.split_once('.')?;
                let (major, minor): (i32, i32) = (major.parse().ok()?, minor.parse().ok()?);
                Some(Ok(Value::number(
                    major
                        .checked_mul(1000)?
                        .checked_add(minor.checked_mul(10)?)?,
                )))
            }
            SystemQuery::DeviceCount => Some(Ok(Value::Numbers(vec![self.gpus.len() as i128]))),
            SystemQuery::ProcessName(pid) => Some(self.process_name(pid)),
            // Drivers that do not host virtual GPUs lack all of these capabilities. For other
            // drivers, the answer is not recorded.
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

    /// Returns the indices of the GPUs for which driver calls hang.
    pub fn hung(&self) -> Vec<u32> {
        let hung = self
            .gpus
            .iter()
            .filter(|(_, own)| matches!(own.health, Health::Hung { .. }));
        hung.map(|(index, _)| *index).collect()
    }

    /// Answers a query about a GPU. Returns `None` if the answer is not recorded.
    pub fn about(&self, subject: Subject, query: Query) -> Option<Answer> {
        let gpu = self.gpus.get(&subject.gpu)?;
        let is_recent = |own: &&Cached| {
            own.answer.is_err()
                || is_lasting(query)
                || own.at_ms.saturating_add(LONGEST_AGE_MS) >= gpu.newest_ms
        };
        let cached = || {
            gpu.answers
                .get(subject.mig, query)
                .filter(is_recent)
                .map(|own| own.answer.clone())
        };
        let lasting = || cached().filter(|_| subject.mig.is_none() && is_lasting(query));
        match gpu.health {
            Health::Lost { .. } => Some(Err(Code::GPU_IS_LOST)),
            // The recorded values are outdated, and a call of the driver would hang.
            Health::Hung { .. } => Some(lasting().unwrap_or(Err(Code::TIMEOUT))),
            // A call of the driver wakes the GPU, as a call by nvidia-smi does.
            Health::Asleep { .. } => lasting(),
            // The recorded values are outdated. The caller must ask the driver, which reports why
            // the GPU has failed.
            Health::Failed { .. } => None,
            // No NVML function answers this query, so that asking the driver is pointless.
            _ if query == Query::GpuPartNumber => Some(Err(Code::FUNCTION_NOT_FOUND)),
            Health::Ok => cached().filter(|_| subject.mig.is_some() || is_recorded(query)),
        }
    }

    /// Returns the first word of the command line, which is also what NVML's function returns.
    fn process_name(&self, pid: u32) -> Answer {
        let file = self.proc_root.join(pid.to_string()).join("cmdline");
        let line = bounded::read(file, bounded::COMMAND_LINE).map_err(|_| Code::NOT_FOUND)?;
        let name = line.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(Value::Text(String::from_utf8_lossy(name).into_owned()))
    }
}

fn text(reading: &Reading<String>) -> Answer {
    match reading {
        Reading::Now(text) | Reading::Earlier { value: text, .. } => Ok(Value::Text(text.clone())),
        Reading::Absent(Absence::DriverError { code }) => Err(Code(*code)),
        Reading::Absent(_) => Err(Code::NOT_SUPPORTED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(health: Health) -> Recorded {
        let mut answers = CachedAnswers::default();
        let known = [
            (Query::Name, Value::Text("NVIDIA H200".to_owned())),
            (Query::Brand, Value::number(14)),
            (Query::UtilizationRates, Value::Numbers(vec![100, 20])),
            (Query::EncoderStats, Value::number(1)),
            (Query::NvLinkVersion(0), Value::number(6)),
        ];
        for (query, value) in known {
            answers.keep(None, query, 1, Ok(value));
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
        Recorded::new(
            platform,
            vec![GpuAnswers {
                index: 0,
                health,
                answers: answers.into(),
            }],
        )
    }

    #[test]
    fn what_the_collector_was_answered_is_recorded_but_for_what_may_be_old() {
        let own = recorded(Health::Ok);
        let ask = |query| own.about(Subject::gpu(0), query);
        assert_eq!(ask(Query::EncoderStats), Some(Ok(Value::number(1))));
        assert_eq!(ask(Query::BridgeChips), None, "it was not asked");
        assert_eq!(
            ask(Query::NvLinkVersion(0)),
            None,
            "another answer raised it"
        );
        assert_eq!(
            own.system(SystemQuery::CudaVersion),
            Some(Ok(Value::number(13_000)))
        );
        assert_eq!(own.about(Subject::gpu(1), Query::Name), None);
    }

    #[test]
    fn what_was_read_long_before_the_rest_is_asked_anew_unless_it_lasts() {
        let mut answers = CachedAnswers::default();
        answers.keep(None, Query::UtilizationRates, 60_000, Ok(Value::number(3)));
        answers.keep(None, Query::PowerLimit, 10_000, Ok(Value::number(700_000)));
        answers.keep(None, Query::DisplayMode, 50_000, Ok(Value::number(0)));
        answers.keep(None, Query::FanSpeed, 10_000, Err(Code::NOT_SUPPORTED));
        answers.keep(
            None,
            Query::Name,
            1,
            Ok(Value::Text("NVIDIA H200".to_owned())),
        );
        let mut own = recorded(Health::Ok);
        own.gpus.insert(
            0,
            RecordedGpu {
                health: Health::Ok,
                newest_ms: answers.newest_ms(),
                answers,
            },
        );
        let is_told = |query| own.about(Subject::gpu(0), query).is_some();
        assert!(
            !is_told(Query::PowerLimit),
            "a setting of fifty seconds ago"
        );
        let told = [
            Query::UtilizationRates,
            Query::DisplayMode,
            Query::FanSpeed,
            Query::Name,
        ];
        assert!(told.into_iter().all(is_told));
    }

    #[test]
    fn a_gpu_that_hangs_is_known_by_name_and_by_nothing_that_changes() {
        let own = recorded(Health::Hung { since_ms: 1 });
        let ask = |query| own.about(Subject::gpu(0), query);
        assert!(matches!(ask(Query::Name), Some(Ok(_))));
        assert_eq!(ask(Query::Brand), Some(Ok(Value::number(14))));
        for query in [
            Query::UtilizationRates,
            Query::EncoderStats,
            Query::BridgeChips,
        ] {
            assert_eq!(ask(query), Some(Err(Code::TIMEOUT)), "{query:?}");
        }
        assert_eq!(
            own.about(Subject::mig(0, 0), Query::Name),
            Some(Err(Code::TIMEOUT))
        );
    }

    #[test]
    fn failed_gpu_is_left_to_the_driver() {
        let (reason, meaning, advice) = (
            Absence::DriverError { code: 999 },
            String::new(),
            String::new(),
        );
        let own = recorded(Health::Failed {
            since_ms: 1,
            reason,
            meaning,
            advice,
        });
        for query in [Query::Name, Query::UtilizationRates] {
            assert_eq!(
                own.about(Subject::gpu(0), query),
                None,
                "the value from before is old: {query:?}"
            );
        }
    }

    #[test]
    fn a_laptops_gpu_is_woken_by_whoever_asks() {
        let own = recorded(Health::Asleep { since_ms: 1 });
        assert!(matches!(
            own.about(Subject::gpu(0), Query::Name),
            Some(Ok(_))
        ));
        assert_eq!(own.about(Subject::gpu(0), Query::UtilizationRates), None);
        let lost = recorded(Health::Lost { since_ms: 1 });
        assert_eq!(
            lost.about(Subject::gpu(0), Query::Name),
            Some(Err(Code::GPU_IS_LOST))
        );
    }
}
