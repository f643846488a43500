//! Validation of the alert file, and its conversion to rules and receivers.

use std::{collections::BTreeSet, ops::Range, path::Path, time::Duration};

use gpumon_probe::{
    model::{
        ConditionKind, GpuName, Severity,
        fields::{GPU_FIELDS, HOST_FIELDS, Unit},
    },
    private_file::{PrivateFile, Secrecy},
    toml_error::suggest,
    units::{Amount, unit_names},
};
use toml::Spanned;

use super::{
    AlertRules, Bound, Check, Quiet, Rate, Receiver, Rule, Subject, Watch, Way,
    address::Address,
    field_of,
    file::{AlertFile, CommandTable, RuleTable, WebhookTable},
    quiet,
    time::Time,
};
use crate::placeholder;

/// A byte range of the alert file, and what is wrong there.
type Complaint = (Range<usize>, String);

/// The default time before an alert is resolved. A reading that recovers for a shorter time may get
/// worse again at once.
const CLEAR_FOR_MS: u64 = 60_000;
/// The shortest and longest window of a rate. A shorter window yields noise, and a longer one uses
/// memory for nothing.
const RATE_OVER: [Duration; 2] = [Duration::from_secs(10), Duration::from_hours(1)];
const RATE_OVER_MS: u64 = 60_000;
const REPEAT_AT_LEAST: Duration = Duration::from_mins(1);
const TIMEOUT: Duration = Duration::from_secs(10);
const TIMEOUTS: [Duration; 2] = [Duration::from_secs(1), Duration::from_mins(1)];
const LONGEST_NAME: usize = 100;
const LONGEST_MESSAGE: usize = 500;
/// The maximum number of rules, more than anybody can distinguish.
const MOST_RULES: usize = 1000;
const MOST_RECEIVERS: usize = 50;
/// The keyword for any condition.
const ANY: &str = "any";

pub(super) fn understood(file: AlertFile) -> Result<AlertRules, Complaint> {
    if let Some(rule) = file.rule.get(MOST_RULES) {
        return Err((
            rule.name.span(),
            format!("there are more than {MOST_RULES} rules; join some of them"),
        ));
    }
    let mut receivers = Vec::new();
    let mut names = BTreeSet::new();
    for webhook in file.webhook {
        own_name(&webhook.name, &mut names, "receiver")?;
        receivers.push(of_webhook(webhook)?);
    }
    for command in file.command {
        own_name(&command.name, &mut names, "receiver")?;
        receivers.push(of_command(command)?);
    }
    if receivers.len() > MOST_RECEIVERS {
        return Err((
            0..0,
            format!("there are more than {MOST_RECEIVERS} receivers; join some of them"),
        ));
    }
    let mut names = BTreeSet::new();
    let mut rules = Vec::new();
    for rule in file.rule {
        own_name(&rule.name, &mut names, "rule")?;
        rules.push(of_rule(rule, &receivers)?);
    }
    Ok(AlertRules { rules, receivers })
}

fn own_name(
    name: &Spanned<String>,
    names: &mut BTreeSet<String>,
    what: &str,
) -> Result<(), Complaint> {
    let text = name.get_ref();
    if text.trim().is_empty()
        || text.chars().count() > LONGEST_NAME
        || text.chars().any(char::is_control)
    {
        return Err((
            name.span(),
            format!("a name has 1 to {LONGEST_NAME} letters, on one line"),
        ));
    }
    if !names.insert(text.clone()) {
        return Err((
            name.span(),
            format!("there are two {what}s named `{text}`; give each a name of its own"),
        ));
    }
    Ok(())
}

fn of_rule(rule: RuleTable, receivers: &[Receiver]) -> Result<Rule, Complaint> {
    let watch = of_watch(&rule)?;
    let gpus = of_gpus(&rule, &watch)?;
    let message = rule
        .message
        .map(|message| of_message(&message))
        .transpose()?;
    let repeat_ms = rule
        .repeat
        .map(|repeat| at_least(&repeat, REPEAT_AT_LEAST))
        .transpose()?;
    let quiet = rule.silence.iter().map(|text| {
        let wrong = || {
            (
                text.span(),
                format!(
                    "`{}` is no time of silence; use {}",
                    text.get_ref(),
                    quiet::EXPECTED
                ),
            )
        };
        Quiet::parse(text.get_ref()).ok_or_else(wrong)
    });
    let known: Vec<&str> = receivers
        .iter()
        .map(|receiver| receiver.name.as_str())
        .collect();
    let notify = match rule.notify {
        None => known.iter().map(|name| (*name).to_owned()).collect(),
        Some(named) => {
            for name in &named {
                if !known.contains(&name.get_ref().as_str()) {
                    let cure = match known.as_slice() {
                        [] => "add a [[webhook]] or a [[command]] of this name".to_owned(),
                        known => suggest(name.get_ref(), known),
                    };
                    return Err((
                        name.span(),
                        format!("there is no receiver `{}`; {cure}", name.get_ref()),
                    ));
                }
            }
            named.into_iter().map(Spanned::into_inner).collect()
        }
    };
    Ok(Rule {
        check: Check {
            watch,
            gpus,
            for_ms: rule.for_time.map_or(0, Time::ms),
            clear_for_ms: rule.clear_for.map_or(CLEAR_FOR_MS, Time::ms),
        },
        name: rule.name.into_inner(),
        severity: rule.severity.unwrap_or(Severity::Warning),
        message,
        repeat_ms,
        quiet: quiet.collect::<Result<_, _>>()?,
        notify,
    })
}

fn of_watch(rule: &RuleTable) -> Result<Watch, Complaint> {
    match (&rule.condition, &rule.absent, &rule.field) {
        (Some(condition), _, _) => {
            refuse(rule, &["condition", "min_severity"], "a rule over a condition")?;
            let kind = match condition.get_ref().as_str() {
                ANY => None,
                word => Some(of_condition(word).map_err(|message| (condition.span(), message))?),
            };
            let min_severity = rule.min_severity.as_ref().map_or(Severity::Notice, |least| *least.get_ref());
            Ok(Watch::Condition { kind, min_severity })
        }
        (None, Some(absent), field) => {
            if !absent.get_ref() {
                return Err((absent.span(), "a rule over what is there needs a threshold; remove `absent`".to_owned()));
            }
            refuse(rule, &["absent", "field"], "a rule over what is absent")?;
            Ok(Watch::Absent(field.as_ref().map(of_field).transpose()?))
        }
        (None, None, Some(field)) => {
            refuse(
                rule,
                &["field", "above", "below", "clear_above", "clear_below", "per", "over"],
                "a rule over a field",
            )?;
            let subject = of_field(field)?;
            let rate = of_rate(rule)?;
            Ok(Watch::Value { subject, bound: of_bound(rule, field, subject, rate)?, rate })
        }
        (None, None, None) => Err((
            rule.name.span(),
            "what does this rule watch? add `field = \"temperature.gpu_celsius\"` with `above` or `below`, `condition = \
             \"throttled\"`, or `absent = true`"
                .to_owned(),
        )),
    }
}

/// Refuses keys that have no meaning for this kind of rule.
fn refuse(rule: &RuleTable, allowed: &[&str], what: &str) -> Result<(), Complaint> {
    fn span<T>(value: Option<&Spanned<T>>) -> Option<Range<usize>> {
        value.map(Spanned::span)
    }
    let keys = [
        ("field", span(rule.field.as_ref())),
        ("condition", span(rule.condition.as_ref())),
        ("min_severity", span(rule.min_severity.as_ref())),
        ("absent", span(rule.absent.as_ref())),
        ("above", span(rule.above.as_ref())),
        ("below", span(rule.below.as_ref())),
        ("clear_above", span(rule.clear_above.as_ref())),
        ("clear_below", span(rule.clear_below.as_ref())),
        ("per", span(rule.per.as_ref())),
        ("over", span(rule.over.as_ref())),
    ];
    let extra = keys
        .into_iter()
        .find_map(|(key, span)| Some((key, span.filter(|_| !allowed.contains(&key))?)));
    extra.map_or(Ok(()), |(key, span)| {
        Err((span, format!("`{key}` means nothing in {what}; remove it")))
    })
}

fn of_condition(word: &str) -> Result<&'static str, String> {
    let known = ConditionKind::TAGS
        .iter()
        .copied()
        .find(|known| *known == word);
    known.ok_or_else(|| {
        let words: Vec<&str> = ConditionKind::TAGS.iter().copied().chain([ANY]).collect();
        format!("unknown condition `{word}`; {}", suggest(word, &words))
    })
}

fn of_field(field: &Spanned<String>) -> Result<Subject, Complaint> {
    let id = field.get_ref().as_str();
    let subjects = || {
        let gpu = GPU_FIELDS.iter().map(Subject::Gpu);
        gpu.chain(HOST_FIELDS.iter().map(Subject::Host))
    };
    subjects()
        .find(|subject| subject.id() == id)
        .ok_or_else(|| {
            let ids: Vec<&str> = subjects().map(Subject::id).collect();
            let cure = match suggest(id, &ids) {
                near if near.starts_with("did you mean") => near,
                // A list of all fields would fill a page.
                _ => of_same_group(id, &ids).unwrap_or_else(|| {
                    "name one of the page \"Fields\", as temperature.gpu_celsius".to_owned()
                }),
            };
            (field.span(), format!("unknown field `{id}`; {cure}"))
        })
}

/// Suggests the fields of the same group; returns `None` if there are none.
fn of_same_group(id: &str, ids: &[&str]) -> Option<String> {
    let (group, _) = id.rsplit_once('.').filter(|(group, _)| !group.is_empty())?;
    let near: Vec<&str> = ids
        .iter()
        .copied()
        .filter(|known| known.starts_with(&format!("{group}.")))
        .collect();
    (!near.is_empty()).then(|| format!("use one of {}", near.join(", ")))
}

fn of_rate(rule: &RuleTable) -> Result<Option<Rate>, Complaint> {
    let Some(per) = &rule.per else {
        return rule.over.as_ref().map_or(Ok(None), |over| {
            Err((
                over.span(),
                "`over` is the window of a rate; add `per = \"minute\"`, or remove it".to_owned(),
            ))
        });
    };
    let over_ms = match &rule.over {
        None => RATE_OVER_MS,
        Some(over) => within(over, RATE_OVER)?.as_millis() as u64,
    };
    Ok(Some(Rate {
        per: *per.get_ref(),
        over_ms,
    }))
}

fn of_bound(
    rule: &RuleTable,
    field: &Spanned<String>,
    subject: Subject,
    rate: Option<Rate>,
) -> Result<Bound, Complaint> {
    let (is_above, threshold, clear, other) = match (&rule.above, &rule.below) {
        (Some(above), None) => (true, above, &rule.clear_below, &rule.clear_above),
        (None, Some(below)) => (false, below, &rule.clear_above, &rule.clear_below),
        (Some(_), Some(below)) => {
            return Err((
                below.span(),
                "a rule has one threshold; make two rules of it".to_owned(),
            ));
        }
        (None, None) => {
            return Err((
                field.span(),
                "a threshold is missing; add `above = ...` or `below = ...`".to_owned(),
            ));
        }
    };
    let (side, opposite) = if is_above {
        ("above", "clear_below")
    } else {
        ("below", "clear_above")
    };
    if let Some(other) = other {
        let message = format!(
            "a rule that fires {side} a value is cleared on the other side; write `{opposite}`"
        );
        return Err((other.span(), message));
    }
    let unit = field_of!(subject, unit);
    let has_limit = rate.is_none() && field_of!(subject, limit).is_some();
    let scale = |amount: &Spanned<Amount>| {
        of_amount(amount.get_ref(), unit, has_limit).map_err(|message| (amount.span(), message))
    };
    let (value, is_share) = scale(threshold)?;
    check_range(threshold, value, is_share, rate, subject)?;
    let clear_value = match clear {
        None => value,
        Some(clear) => match scale(clear)? {
            (clear, is_same) if is_same == is_share => clear,
            _ => {
                let message = format!(
                    "`{side}` and `{opposite}` must be of the same kind: both or neither in %"
                );
                return Err((clear.span(), message));
            }
        },
    };
    if let Some(clear) = clear
        .as_ref()
        .filter(|_| (is_above && clear_value > value) || (!is_above && clear_value < value))
    {
        let message = format!(
            "it would clear before it fires; `{opposite}` must be {} `{side}`",
            if is_above { "at most" } else { "at least" }
        );
        return Err((clear.span(), message));
    }
    Ok(Bound {
        is_above,
        value,
        clear: clear_value,
        is_share,
    })
}

/// Converts an amount to the unit of its field, or to percent of the field's limit, and returns
/// `true` with a percentage. A number without a unit has the unit of the field.
///
/// # Errors
/// Returns the units that the field supports.
fn of_amount(amount: &Amount, unit: Unit, has_limit: bool) -> Result<(f64, bool), String> {
    let Amount {
        number,
        unit: typed,
    } = amount;
    if let Some(value) = amount.convert_to(unit) {
        return Ok((value, false));
    }
    match typed.as_str() {
        "" => return Ok((*number, false)),
        "%" if has_limit => return Ok((*number, true)),
        _ => {}
    }
    let names = unit_names(unit).iter().map(|(name, _)| *name);
    let names: Vec<&str> = names.chain(has_limit.then_some("%")).collect();
    Err(match names.as_slice() {
        [] => format!("this field has no unit `{typed}`; write a number alone"),
        names => format!(
            "this field is not in `{typed}`; use one of {}",
            names.join(", ")
        ),
    })
}

/// Refuses a threshold that no reading can ever pass, such as 200 for a percentage, because it must
/// be a mistake.
fn check_range(
    threshold: &Spanned<Amount>,
    value: f64,
    is_share: bool,
    rate: Option<Rate>,
    subject: Subject,
) -> Result<(), Complaint> {
    let (least, largest) = field_of!(subject, range);
    if rate.is_none() && !is_share && !(least..=largest).contains(&value) {
        let message = format!(
            "{} is always between {least} and {largest}; choose a value there",
            subject.id()
        );
        return Err((threshold.span(), message));
    }
    Ok(())
}

fn of_gpus(rule: &RuleTable, watch: &Watch) -> Result<Vec<GpuName>, Complaint> {
    let Some(gpus) = &rule.gpus else {
        return Ok(Vec::new());
    };
    if watch.is_of_host() {
        return Err((
            gpus.span(),
            "this field is the machine's, and of no GPU; remove `gpus`".to_owned(),
        ));
    }
    if gpus.get_ref().is_empty() {
        return Err((
            gpus.span(),
            "no GPU is named; name some, or remove `gpus` for all of them".to_owned(),
        ));
    }
    Ok(gpus.get_ref().clone())
}

fn of_message(message: &Spanned<String>) -> Result<String, Complaint> {
    let text = message.get_ref().trim();
    if text.is_empty()
        || text.chars().count() > LONGEST_MESSAGE
        || text.chars().any(char::is_control)
    {
        return Err((
            message.span(),
            format!("a message has 1 to {LONGEST_MESSAGE} letters, on one line"),
        ));
    }
    Ok(text.to_owned())
}

fn of_webhook(webhook: WebhookTable) -> Result<Receiver, Complaint> {
    let (span, url) = match (webhook.url, webhook.url_file) {
        (Some(url), None) => (url.span(), url.into_inner()),
        (None, Some(file)) => {
            let read = PrivateFile::read(Path::new(file.get_ref()), Secrecy::Public)
                .map_err(|error| (file.span(), error.to_string()))?;
            (file.span(), read.text().trim().to_owned())
        }
        (Some(_), Some(file)) => {
            return Err((
                file.span(),
                "`url` is there, too; remove one of them".to_owned(),
            ));
        }
        (None, None) => {
            let message = "where to? add `url = \"https://...\"`, or `url_file` with the name of a file that has it";
            return Err((webhook.name.span(), message.to_owned()));
        }
    };
    let address = Address::parse(&url).map_err(|message| (span, message.to_owned()))?;
    Ok(Receiver {
        name: webhook.name.into_inner(),
        way: Way::Webhook {
            address,
            format: webhook.format,
        },
        timeout: of_timeout(webhook.timeout.as_ref())?,
    })
}

fn of_command(command: CommandTable) -> Result<Receiver, Complaint> {
    let words = command.command.get_ref();
    if words
        .first()
        .is_none_or(|program| program.get_ref().is_empty())
    {
        let message = "which program? name it first, as [\"notify-send\", \"{rule}\", \"{text}\"]";
        return Err((command.command.span(), message.to_owned()));
    }
    for word in words {
        if let Some(unknown) = placeholder::unknown(word.get_ref()) {
            let cure = suggest(unknown, &placeholder::NAMES);
            return Err((
                word.span(),
                format!("unknown placeholder `{{{unknown}}}`; {cure}"),
            ));
        }
        if word.get_ref().contains('\0') {
            return Err((
                word.span(),
                "a word of a command has no zero byte; remove it".to_owned(),
            ));
        }
    }
    let program = &words[0];
    if placeholder::is_in(program.get_ref()) {
        let message =
            "the program cannot be a placeholder; name it, and use placeholders in its arguments";
        return Err((program.span(), message.to_owned()));
    }
    let with_text = words
        .iter()
        .find(|word| placeholder::has_text(word.get_ref()));
    if let Some(word) = with_text.filter(|_| !placeholder::shows_arguments(program.get_ref())) {
        let message = format!(
            "`{{text}}` has names of processes, which anybody chooses, and `{}` might execute its arguments; use \
             \"$GPUMON_ALERT_TEXT\" in a script instead. Only {} can have `{{text}}`",
            program.get_ref(),
            placeholder::SHOWING_PROGRAMS.join(", ")
        );
        return Err((word.span(), message));
    }
    let words = command
        .command
        .into_inner()
        .into_iter()
        .map(Spanned::into_inner)
        .collect();
    Ok(Receiver {
        name: command.name.into_inner(),
        timeout: of_timeout(command.timeout.as_ref())?,
        way: Way::Command { words },
    })
}

fn of_timeout(timeout: Option<&Spanned<Time>>) -> Result<Duration, Complaint> {
    timeout.map_or(Ok(TIMEOUT), |timeout| within(timeout, TIMEOUTS))
}

fn within(time: &Spanned<Time>, [least, most]: [Duration; 2]) -> Result<Duration, Complaint> {
    let given = time.get_ref().0;
    if (least..=most).contains(&given) {
        return Ok(given);
    }
    Err((
        time.span(),
        format!(
            "this time is from {} s to {} s",
            least.as_secs(),
            most.as_secs()
        ),
    ))
}

fn at_least(time: &Spanned<Time>, least: Duration) -> Result<u64, Complaint> {
    let given = *time.get_ref();
    if given.0 >= least {
        return Ok(given.ms());
    }
    Err((
        time.span(),
        format!("this time is at least {} s", least.as_secs()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amount_is_value_or_share_of_limit() {
        let read =
            |text: &str, unit, has_limit| of_amount(&Amount::parse(text).unwrap(), unit, has_limit);
        assert_eq!(read("85 C", Unit::Celsius, false), Ok((85.0, false)));
        assert_eq!(read("85", Unit::Celsius, false), Ok((85.0, false)));
        assert_eq!(read("90 %", Unit::Bytes, true), Ok((90.0, true)));
        assert_eq!(read("90 %", Unit::Percent, true), Ok((90.0, false)));
        for (text, unit, cure) in [
            ("90 %", Unit::Bytes, "GiB"),
            ("90 F", Unit::Celsius, "C, °C"),
            ("3 lanes", Unit::Count, "a number alone"),
        ] {
            let error = read(text, unit, false).unwrap_err();
            assert!(error.contains(cure), "{text}: {error}");
        }
    }
}
