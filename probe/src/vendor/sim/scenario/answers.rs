//! The `answers` tables, which set the exact answers that NVML functions return, and the names of
//! NVML functions in scenarios.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, Unexpected, Visitor},
};

use super::{Scenario, fault::ReturnCode};
use crate::{model::MigInstance, toml_error::suggest_word, vendor::sim::FUNCTIONS};

/// The answers that the scenario sets, by function and arguments.
pub(super) type GivenAnswers = BTreeMap<CallKey, GivenAnswer>;

/// A function and its arguments, for example `nvmlDeviceGetClockInfo(1)`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CallKey {
    function: &'static str,
    arguments: Vec<u32>,
}

/// The functions whose answers are always simulated and cannot be set by scenarios.
const SIMULATED_FUNCTIONS: [&str; 34] = [
    "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetComputeRunningProcesses_v2",
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses",
    "nvmlDeviceGetGraphicsRunningProcesses_v2",
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetHandleByIndex_v2",
    "nvmlDeviceGetHandleByPciBusId_v2",
    "nvmlDeviceGetHandleBySerial",
    "nvmlDeviceGetHandleByUUID",
    "nvmlDeviceGetMPSComputeRunningProcesses",
    "nvmlDeviceGetMPSComputeRunningProcesses_v2",
    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
    "nvmlDeviceGetMemoryAffinity",
    "nvmlDeviceGetNvLinkInfo",
    "nvmlDeviceGetProcessUtilization",
    "nvmlDeviceGetRetiredPages_v2",
    "nvmlDeviceGetSamples",
    "nvmlDeviceGetTopologyNearestGpus",
    "nvmlDeviceRegisterEvents",
    "nvmlErrorString",
    "nvmlEventSetCreate",
    "nvmlEventSetFree",
    "nvmlEventSetWait_v2",
    "nvmlGpmMetricsGet",
    "nvmlGpmMigSampleGet",
    "nvmlGpmQueryDeviceSupport",
    "nvmlGpmSampleAlloc",
    "nvmlGpmSampleFree",
    "nvmlGpmSampleGet",
    "nvmlInitWithFlags",
    "nvmlInit_v2",
    "nvmlShutdown",
    "nvmlSystemGetTopologyGpuSet",
];

/// The answer that a function returns, in the function's units.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "AnswerInput")]
pub enum GivenAnswer {
    /// The `nvmlReturn_t` with which the function fails.
    Code(u32),
    Text(String),
    /// The output values, or the fields of the output structure, in order.
    Numbers(Vec<i64>),
}

/// An answer as it appears in the scenario file.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "an answer must be a string, a number, a list of numbers, or an error such as { \
     code = 3 }"
)]
enum AnswerInput {
    Text(String),
    Number(i64),
    Numbers(Vec<i64>),
    Failure(Failure),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    code: ReturnCode,
}

impl From<AnswerInput> for GivenAnswer {
    fn from(input: AnswerInput) -> Self {
        match input {
            AnswerInput::Text(text) => Self::Text(text),
            AnswerInput::Number(number) => Self::Numbers(vec![number]),
            AnswerInput::Numbers(numbers) => Self::Numbers(numbers),
            AnswerInput::Failure(failure) => Self::Code(failure.code.0),
        }
    }
}

impl<'de> Deserialize<'de> for CallKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let (name, rest) = text.split_once('(').unwrap_or((&text, ")"));
        let arguments = rest.strip_suffix(')').and_then(|list| {
            list.split(',')
                .map(str::trim)
                .filter(|word| !word.is_empty())
                .map(|word| word.parse().ok())
                .collect()
        });
        let expected = &"a function with its arguments, such as \"nvmlDeviceGetClockInfo(1)\"";
        let arguments =
            arguments.ok_or_else(|| de::Error::invalid_value(Unexpected::Str(&text), expected))?;
        let function = Function::parse(name).map_err(de::Error::custom)?.0;
        if SIMULATED_FUNCTIONS.contains(&function) {
            return Err(de::Error::custom(format_args!(
                "the simulation determines the result of `{function}`; remove it from this table, \
                 or make the function fail in [returns]"
            )));
        }
        Ok(Self {
            function,
            arguments,
        })
    }
}

impl Scenario {
    /// Returns the answer that the scenario sets for a call about the machine, if any.
    pub fn find_given_answer(
        &self,
        function: &'static str,
        arguments: &[u32],
    ) -> Option<&GivenAnswer> {
        find_answer(&self.answers, function, arguments)
    }

    /// Returns the answer that the scenario sets for a call about a GPU or a MIG device, if any.
    pub fn find_given_gpu_answer(
        &self,
        gpu: u32,
        part: Option<MigInstance>,
        function: &'static str,
        arguments: &[u32],
    ) -> Option<&GivenAnswer> {
        let settings = self.find_settings(gpu)?;
        let Some(part) = part else {
            return find_answer(&settings.answers, function, arguments);
        };
        let mut devices = settings
            .mig
            .iter()
            .flat_map(|steps| steps.get_ref().values())
            .flatten();
        find_answer(
            &devices.find(|device| device.instance() == part)?.answers,
            function,
            arguments,
        )
    }
}

fn find_answer<'a>(
    answers: &'a GivenAnswers,
    function: &'static str,
    arguments: &[u32],
) -> Option<&'a GivenAnswer> {
    answers.get(&CallKey {
        function,
        arguments: arguments.to_vec(),
    })
}

/// The name of an NVML function that the fake library exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Function(pub(crate) &'static str);

/// A key in `[latency]`: the name of a function, or `default` for all other functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LatencyKey(&'static str);

impl LatencyKey {
    pub(crate) const DEFAULT: Self = Self("default");

    pub(crate) fn matches(self, function: &str) -> bool {
        self.0 == function
    }

    fn parse(name: &str) -> Result<Self, String> {
        if name == Self::DEFAULT.0 {
            Ok(Self::DEFAULT)
        } else {
            Function::parse(name).map(|function| Self(function.0))
        }
    }
}

impl Function {
    pub(super) fn parse(name: &str) -> Result<Self, String> {
        FUNCTIONS
            .iter()
            .find(|known| **known == name)
            .map(|known| Self(known))
            .ok_or_else(|| {
                let cure = match suggest_word(name, FUNCTIONS) {
                    near if near.starts_with("did you mean") => near,
                    _ => "use one that gpumon's fake NVML exports, such as nvmlDeviceGetPowerUsage"
                        .to_owned(),
                };
                format!("unknown NVML function `{name}`; {cure}")
            })
    }
}

/// A visitor that parses a name. Only errors from a visitor include the position in the file, so
/// names are not parsed later.
struct NameVisitor<T>(fn(&str) -> Result<T, String>);

impl<T> Visitor<'_> for NameVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of an NVML function, such as \"nvmlDeviceGetPowerUsage\"")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<T, E> {
        (self.0)(name).map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for Function {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor(Self::parse))
    }
}

impl<'de> Deserialize<'de> for LatencyKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor(Self::parse))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Scenario, String> {
        Scenario::from_toml(text, "test.toml").map_err(|error| error.to_string())
    }

    #[test]
    fn answers_are_found_by_function_and_arguments() {
        let scenario = read(
            "[answers]\nnvmlSystemGetDriverVersion = \"610.57.04\"\n[[gpu]]\nindex = \
             0\n[gpu.answers]\nnvmlDeviceGetUtilizationRates = [5, \
             6]\n\"nvmlDeviceGetClockInfo(1)\" = 210\n\"nvmlDeviceGetFieldValues(185, 2)\" = { \
             code = 3 }\n[[gpu.mig]]\nprofile = \"1g.10gb\"\ngpu_instance = 9\nanswers = { \
             nvmlDeviceGetUUID = \"MIG-9\" }\n",
        )
        .unwrap();
        assert_eq!(
            scenario.find_given_answer("nvmlSystemGetDriverVersion", &[]),
            Some(&GivenAnswer::Text("610.57.04".to_owned()))
        );
        let about = |function, arguments: &[u32]| {
            scenario.find_given_gpu_answer(0, None, function, arguments)
        };
        assert_eq!(
            about("nvmlDeviceGetUtilizationRates", &[]),
            Some(&GivenAnswer::Numbers(vec![5, 6]))
        );
        assert_eq!(
            about("nvmlDeviceGetClockInfo", &[1]),
            Some(&GivenAnswer::Numbers(vec![210]))
        );
        assert_eq!(about("nvmlDeviceGetClockInfo", &[2]), None);
        assert_eq!(
            about("nvmlDeviceGetFieldValues", &[185, 2]),
            Some(&GivenAnswer::Code(3))
        );
        let part = Some(MigInstance {
            gpu_instance: 9,
            compute_instance: 0,
        });
        let uuid = GivenAnswer::Text("MIG-9".to_owned());
        assert_eq!(
            scenario.find_given_gpu_answer(0, part, "nvmlDeviceGetUUID", &[]),
            Some(&uuid)
        );
        assert_eq!(about("nvmlDeviceGetUUID", &[]), None);
    }

    #[test]
    fn invalid_calls_and_answers_are_rejected() {
        for (line, words) in [
            (
                "nvmlDeviceGetPowerUsag = 1",
                "did you mean `nvmlDeviceGetPowerUsage`?",
            ),
            (
                "\"nvmlDeviceGetClockInfo(x)\" = 1",
                "a function with its arguments",
            ),
            (
                "nvmlDeviceGetSamples = [1, 2, 0, 0]",
                "make the function fail in [returns]",
            ),
            (
                "nvmlDeviceGetPowerUsage = 1.5",
                "an answer must be a string, a number",
            ),
            (
                "nvmlDeviceGetPowerUsage = { code = 0 }",
                "an answer must be a string, a number",
            ),
        ] {
            let error = read(&format!("[[gpu]]\nindex = 0\n[gpu.answers]\n{line}\n")).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
