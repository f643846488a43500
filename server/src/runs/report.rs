//! What the process that works says, understood.
//!
//! The lines are a stranger's: a terminal announces what it likes. What is taken over is cut to a size and has no control
//! characters, and what is of no known kind is passed over, for the program that works may be a newer one.

use gpumon_probe::model::{Absence, Reading};
use serde::{Deserialize, Deserializer};

use super::state::{RunItem, RunPhase, RunResult, RunTopic, reading};

/// Names of things.
const NAME: usize = 80;
/// What is said of progress.
const BRIEF: usize = 200;
/// A sentence, or why something failed.
const SENTENCE: usize = 2000;
/// Devices of one run.
const DEVICES: usize = 64;

/// What is said, as far as it matters here.
#[derive(Debug, PartialEq)]
pub(crate) enum Report {
    Begun {
        title: String,
        devices: Vec<Device>,
        steps: u32,
    },
    Phase {
        step: u32,
        id: String,
        phase: RunPhase,
    },
    Progress {
        share: Option<f64>,
        text: String,
    },
    /// A result, a sentence or a failure.
    Item(RunItem),
    Ended {
        code: u8,
    },
    /// Of a kind that is not known here.
    Unknown,
}

/// A device by its own names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) uuid: Option<String>,
}

/// Understands a line.
///
/// # Errors
/// What is wrong with one that is no report.
pub(crate) fn understand(line: &str) -> Result<Report, String> {
    let told: Told = serde_json::from_str(line).map_err(|error| format!("a line is not a report: {error}"))?;
    Ok(match told {
        Told::Begun { title, devices, steps } => Report::Begun {
            title: clean(&title, BRIEF),
            devices: devices.into_iter().take(DEVICES).map(Device::from).collect(),
            steps,
        },
        Told::Phase { step, id, phase } => Report::Phase { step, id: clean(&id, NAME), phase },
        Told::Progress { share, text } => {
            Report::Progress { share: share.map(|share| share.clamp(0.0, 1.0)), text: clean(&text, BRIEF) }
        }
        Told::Result(outcome) => Report::Item(RunItem::Result(outcome.result())),
        Told::Said { topic, text } => Report::Item(RunItem::Said { topic, text: clean(&text, SENTENCE) }),
        Told::Failed { id, error } => {
            Report::Item(RunItem::Failed { id: clean(&id, NAME), error: clean(&error, SENTENCE) })
        }
        Told::Seed(seed) => Report::Item(seed.item()),
        Told::Check(check) => Report::Item(check.item()),
        Told::Ended { code } => Report::Ended { code },
        Told::Other => Report::Unknown,
    })
}

/// At most so many characters, none of which steers a terminal.
pub(crate) fn clean(text: &str, most: usize) -> String {
    let printable = text.chars().map(|character| if character.is_control() { ' ' } else { character });
    printable.take(most).collect()
}

/// A line as it stands there. What is not used is left out, and what may be missing too.
#[derive(Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
enum Told {
    Begun {
        title: String,
        devices: Vec<DeviceName>,
        #[serde(default)]
        steps: u32,
    },
    Phase {
        step: u32,
        id: String,
        phase: RunPhase,
    },
    Progress {
        share: Option<f64>,
        #[serde(default)]
        text: String,
    },
    Result(Box<Outcome>),
    Seed(Box<Seed>),
    Check(Box<Check>),
    Said {
        topic: RunTopic,
        text: String,
    },
    Failed {
        id: String,
        error: String,
    },
    Ended {
        code: u8,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct DeviceName {
    name: String,
    uuid: Option<String>,
}

#[derive(Deserialize)]
struct Outcome {
    id: String,
    device: DeviceName,
    #[serde(default)]
    dtype: String,
    device_time: Option<Times>,
    host_time: Option<Times>,
    #[serde(default)]
    rate: Rate,
    #[serde(default)]
    roofline: Roofline,
    verify: Verification,
    #[serde(default)]
    partial: bool,
}

/// What a variant of a row has shown: one of the last four.
#[derive(Deserialize)]
struct Seed {
    row: String,
    variant: String,
    outcome: Option<Outcome>,
    text: Option<String>,
    reason: Option<String>,
    error: Option<String>,
}

impl Seed {
    fn item(self) -> RunItem {
        let id = clean(&format!("{} {}", self.row, self.variant), NAME);
        match (self.outcome, self.error) {
            (Some(outcome), _) => RunItem::Result(RunResult { id, ..outcome.result() }),
            (None, Some(error)) => RunItem::Failed { id, error: clean(&error, SENTENCE) },
            (None, None) => {
                let text = self.text.or(self.reason).unwrap_or_default();
                RunItem::Said { topic: RunTopic::Step, text: clean(&format!("{id}: {text}"), SENTENCE) }
            }
        }
    }
}

/// A reading beside what was made, in words.
#[derive(Deserialize)]
struct Check {
    load: String,
    verdict: String,
    text: String,
}

impl Check {
    fn item(self) -> RunItem {
        let text = clean(&self.text, SENTENCE);
        match &*self.verdict {
            "differs" => RunItem::Failed { id: clean(&self.load, NAME), error: text },
            _ => RunItem::Said { topic: RunTopic::Proof, text },
        }
    }
}

#[derive(Deserialize)]
struct Times {
    median_us: f64,
}

#[derive(Default, Deserialize)]
struct Rate {
    bytes_per_second: Option<f64>,
    operations_per_second: Option<f64>,
}

#[derive(Deserialize)]
#[serde(default)]
struct Roofline {
    limit: String,
    #[serde(deserialize_with = "number_or_reason")]
    share: Reading<f64>,
}

#[derive(Deserialize)]
struct Verification {
    ok: bool,
    #[serde(default)]
    checked: u64,
    #[serde(default)]
    wrong: u64,
}

impl Default for Roofline {
    fn default() -> Self {
        Self { limit: String::new(), share: Reading::Absent(Absence::Unknown) }
    }
}

/// A reading whose reason may be one that is not known here.
fn number_or_reason<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Reading<f64>, D::Error> {
    let found = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(found).unwrap_or(Reading::Absent(Absence::Unknown)))
}

impl From<DeviceName> for Device {
    fn from(DeviceName { name, uuid }: DeviceName) -> Self {
        Self { name: clean(&name, NAME), uuid: uuid.map(|uuid| clean(&uuid, NAME)) }
    }
}

impl Outcome {
    fn result(self) -> RunResult {
        let median = |times: Option<Times>| times.map(|times| times.median_us);
        RunResult {
            id: clean(&self.id, NAME),
            device: clean(&self.device.name, NAME),
            dtype: clean(&self.dtype, NAME),
            device_us: reading(median(self.device_time), Absence::NotSupported),
            host_us: reading(median(self.host_time), Absence::Unknown),
            bytes_per_second: reading(self.rate.bytes_per_second, Absence::NotSupported),
            operations_per_second: reading(self.rate.operations_per_second, Absence::NotSupported),
            share: self.roofline.share,
            limit: clean(&self.roofline.limit, NAME),
            // What was not checked is not right, whatever it says of itself.
            verified: self.verify.ok && self.verify.checked > 0,
            checked: self.verify.checked,
            wrong: self.verify.wrong,
            partial: self.partial,
        }
    }
}

#[cfg(test)]
mod tests {
    use gpumon_workload::{
        Backend,
        report::{Line, Phase, Report as Spoken, Topic},
    };

    use super::*;

    fn spoken(report: Spoken<()>) -> Report {
        understand(&serde_json::to_string(&Line { at_ms: 1, report }).unwrap()).unwrap()
    }

    #[test]
    fn what_the_runner_says_is_understood() {
        let (id, backend) = ("copy".to_owned(), Backend::Cuda);
        let begun = Spoken::Begun { title: "copy".to_owned(), devices: Vec::new(), steps: 2 };
        assert_eq!(spoken(begun), Report::Begun { title: "copy".to_owned(), devices: Vec::new(), steps: 2 });
        let phase = Spoken::Phase { step: 1, id: id.clone(), backend, phase: Phase::WarmingUp };
        assert_eq!(spoken(phase), Report::Phase { step: 1, id: id.clone(), phase: RunPhase::WarmingUp });
        let progress = Spoken::Progress { share: 0.5, text: "half".to_owned() };
        assert_eq!(spoken(progress), Report::Progress { share: Some(0.5), text: "half".to_owned() });
        let said = Spoken::Said { topic: Topic::Cure, text: "Do it.".to_owned() };
        let text = "Do it.".to_owned();
        assert_eq!(spoken(said), Report::Item(RunItem::Said { topic: RunTopic::Cure, text }));
        let text = || "utilization.gpu_percent of GPU 0 agrees".to_owned();
        let checked = |verdict: &str| {
            let check = serde_json::json!({"report": "check", "load": "half", "verdict": verdict, "text": text()});
            understand(&check.to_string())
        };
        let said = Report::Item(RunItem::Said { topic: RunTopic::Proof, text: text() });
        assert_eq!((checked("agrees"), checked("not_reported").is_ok()), (Ok(said), true));
        let failed = Report::Item(RunItem::Failed { id: "half".to_owned(), error: text() });
        assert_eq!(checked("differs"), Ok(failed));
        let failed = Spoken::Failed { id: id.clone(), backend, error: "no room".to_owned(), code: 1 };
        assert_eq!(spoken(failed), Report::Item(RunItem::Failed { id, error: "no room".to_owned() }));
        assert_eq!(spoken(Spoken::Ended { code: 130 }), Report::Ended { code: 130 });
    }

    #[test]
    fn a_variant_of_a_row_is_a_result_a_sentence_or_a_failure() {
        let seed = |rest: &str| {
            let line = format!(r#"{{"at_ms":1,"report":"seed","row":"c","variant":"pinned","backend":"cuda",{rest}}}"#);
            understand(&line).unwrap()
        };
        let outcome = r#""outcome":{"id":"square-pinned","device":{"name":"A GPU"},"device_time":null,"host_time":null,
            "verify":{"ok":true,"checked":10,"wrong":0}}"#;
        let Report::Item(RunItem::Result(result)) = seed(outcome) else { panic!("a result") };
        assert_eq!((result.id.as_str(), result.verified), ("c pinned", true));
        let (id, error) = ("c pinned".to_owned(), "no room".to_owned());
        assert_eq!(seed(r#""error":"no room""#), Report::Item(RunItem::Failed { id, error }));
        let said = RunItem::Said { topic: RunTopic::Step, text: "c pinned: there is no GPU".to_owned() };
        assert_eq!(seed(r#""reason":"there is no GPU""#), Report::Item(said));
    }

    #[test]
    fn a_result_keeps_what_is_shown_and_says_what_is_absent() {
        let line = r#"{"at_ms":1,"report":"result","id":"copy","backend":"cpu","device":{"name":"A CPU"},"dtype":"fp32",
            "n":10,"device_time":null,"host_time":{"median_us":12.5,"n":3},"rate":{"bytes_per_second":2e9},
            "roofline":{"limit":"memory","share":{"absent":"on_holiday"}},"verify":{"ok":true,"checked":10,"wrong":0}}"#;
        let Ok(Report::Item(RunItem::Result(result))) = understand(line) else { panic!("a result") };
        assert_eq!((result.device_us, result.host_us), (Reading::Absent(Absence::NotSupported), Reading::Now(12.5)));
        assert_eq!((result.share, result.verified), (Reading::Absent(Absence::Unknown), true));
        let unchecked = line.replace(r#""checked":10"#, r#""checked":0"#);
        let Ok(Report::Item(RunItem::Result(result))) = understand(&unchecked) else { panic!("a result") };
        assert!(!result.verified, "nothing checked is not right");
    }

    #[test]
    fn a_stranger_cannot_say_too_much() {
        let title = "\\u001b[2J".to_owned() + &"x".repeat(5000);
        let line = format!(r#"{{"report":"begun","title":"{title}","devices":[],"steps":1}}"#);
        let Ok(Report::Begun { title, .. }) = understand(&line) else { panic!("it has begun") };
        assert_eq!(title.chars().count(), BRIEF);
        assert!(!title.contains('\u{1b}'));
        assert_eq!(understand(r#"{"report":"sung","song":1}"#), Ok(Report::Unknown));
        for line in ["", "[]", "{}", "hello", r#"{"report":"ended","code":999}"#, r#"{"report":"result"}"#] {
            assert!(understand(line).unwrap_err().contains("not a report"), "{line}");
        }
    }
}
