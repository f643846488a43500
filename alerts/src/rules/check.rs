//! Validation of the alert file, and its conversion to rules and receivers.

use std::{collections::BTreeSet, ops::Range, path::Path, time::Duration};

use gpumon_probe::{
    model::{
        ConditionKind, GpuName, Severity,
        fields::{GPU_FIELDS, HOST_FIELDS, Unit},
    },
    private_file::{PrivateFile, Secrecy},
    toml_error::suggest_word,
    units::{Amount, unit_names},
};
use toml::Spanned;

use super::{
    AlertRules, DeliveryMethod, QuietTime, Rate, Receiver, Rule, RuleCheck, Threshold, Watch,
    WatchedField, field_of,
    file::{self, AlertFile, CommandTable, RuleDuration, RuleTable, WebhookAddress, WebhookTable},
};

/// A byte range of the alert file, and a description of the problem there.
type Problem = (Range<usize>, String);

/// The default time for which a rule must not match before its alert is resolved. A delay is needed
/// because a reading may return to normal only briefly.
const DEFAULT_CLEAR_FOR_MS: u64 = 60_000;
/// The shortest and longest allowed window for a rate. A shorter window yields noise, and a longer
/// one wastes memory.
const RATE_WINDOW_RANGE: [Duration; 2] = [Duration::from_secs(10), Duration::from_hours(1)];
const DEFAULT_RATE_WINDOW_MS: u64 = 60_000;
const MIN_REPEAT: Duration = Duration::from_mins(1);
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
const TIMEOUT_RANGE: [Duration; 2] = [Duration::from_secs(1), Duration::from_mins(1)];
const MAX_NAME_CHARS: usize = 100;
const MAX_MESSAGE_CHARS: usize = 500;
/// The maximum number of rules, more than anybody can keep track of.
const MAX_RULES: usize = 1000;
const MAX_RECEIVERS: usize = 50;
/// The keyword for any condition.
const ANY_CONDITION: &str = "any";

/// Returns an error about a part of the file.
fn reject<T, V>(part: &Spanned<V>, message: impl Into<String>) -> Result<T, Problem> {
    Err((part.span(), message.into()))
}

pub(super) fn validate(file: AlertFile) -> Result<AlertRules, Problem> {
    if let Some(rule) = file.rule.get(MAX_RULES) {
        return reject(
            &rule.name,
            format!("there are more than {MAX_RULES} rules; combine some of them"),
        );
    }
    let mut receivers = Vec::new();
    let mut names = BTreeSet::new();
    for webhook in file.webhook {
        check_name(&webhook.name, &mut names, "receiver")?;
        receivers.push(build_webhook(webhook)?);
    }
    for command in file.command {
        check_name(&command.name, &mut names, "receiver")?;
        receivers.push(build_command(command)?);
    }
    if receivers.len() > MAX_RECEIVERS {
        return Err((
            0..0,
            format!("there are more than {MAX_RECEIVERS} receivers; combine some of them"),
        ));
    }
    let mut names = BTreeSet::new();
    let mut rules = Vec::new();
    for rule in file.rule {
        check_name(&rule.name, &mut names, "rule")?;
        rules.push(build_rule(rule, &receivers)?);
    }
    Ok(AlertRules { rules, receivers })
}

/// Returns `true` if the text is a single line that is not blank and has at most `max_chars`
/// characters.
fn is_short_line(text: &str, max_chars: usize) -> bool {
    !text.trim().is_empty()
        && text.chars().count() <= max_chars
        && !text.chars().any(char::is_control)
}

fn check_name(
    name: &Spanned<String>,
    names: &mut BTreeSet<String>,
    what: &str,
) -> Result<(), Problem> {
    let text = name.get_ref();
    if !is_short_line(text, MAX_NAME_CHARS) {
        return reject(
            name,
            format!("a name must have 1 to {MAX_NAME_CHARS} characters, on one line"),
        );
    }
    if !names.insert(text.clone()) {
        return reject(
            name,
            format!("there are two {what}s named `{text}`; give each a unique name"),
        );
    }
    Ok(())
}

fn build_rule(rule: RuleTable, receivers: &[Receiver]) -> Result<Rule, Problem> {
    let watch = build_watch(&rule)?;
    let gpus = check_gpus(&rule, &watch)?;
    let message = rule
        .message
        .map(|message| check_message(&message))
        .transpose()?;
    let repeat_ms = rule
        .repeat
        .map(|repeat| check_minimum_duration_ms(&repeat, MIN_REPEAT))
        .transpose()?;
    let quiet = rule.silence.iter().map(|text| {
        let wrong = || {
            (
                text.span(),
                format!(
                    "`{}` is not a valid silence; use {}",
                    text.get_ref(),
                    file::EXPECTED_QUIET_TIMES
                ),
            )
        };
        QuietTime::parse(text.get_ref()).ok_or_else(wrong)
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
                        [] => "add a [[webhook]] or a [[command]] with this name".to_owned(),
                        known => suggest_word(name.get_ref(), known),
                    };
                    return reject(
                        name,
                        format!("there is no receiver `{}`; {cure}", name.get_ref()),
                    );
                }
            }
            named.into_iter().map(Spanned::into_inner).collect()
        }
    };
    Ok(Rule {
        check: RuleCheck {
            watch,
            gpus,
            for_ms: rule.for_time.map_or(0, RuleDuration::as_millis),
            clear_for_ms: rule
                .clear_for
                .map_or(DEFAULT_CLEAR_FOR_MS, RuleDuration::as_millis),
        },
        name: rule.name.into_inner(),
        severity: rule.severity.unwrap_or(Severity::Warning),
        message,
        repeat_ms,
        quiet: quiet.collect::<Result<_, _>>()?,
        notify,
    })
}

fn build_watch(rule: &RuleTable) -> Result<Watch, Problem> {
    if let Some(cause) = &rule.limited_by {
        refuse_meaningless_keys(rule, &["limited_by"], "a rule with `limited_by`")?;
        return Ok(Watch::LimitedBy(*cause.get_ref()));
    }
    match (&rule.condition, &rule.absent, &rule.field) {
        (Some(condition), _, _) => {
            refuse_meaningless_keys(
                rule,
                &["condition", "min_severity"],
                "a rule with `condition`",
            )?;
            let kind = match condition.get_ref().as_str() {
                ANY_CONDITION => None,
                word => Some(
                    parse_condition_kind(word).map_err(|message| (condition.span(), message))?,
                ),
            };
            let min_severity = rule
                .min_severity
                .as_ref()
                .map_or(Severity::Notice, |least| *least.get_ref());
            Ok(Watch::Condition { kind, min_severity })
        }
        (None, Some(absent), field) => {
            if !absent.get_ref() {
                return reject(
                    absent,
                    "`absent` must be true; to check a value instead, replace `absent` with a \
                     threshold",
                );
            }
            refuse_meaningless_keys(rule, &["absent", "field"], "a rule with `absent`")?;
            Ok(Watch::Absent(field.as_ref().map(find_field).transpose()?))
        }
        (None, None, Some(field)) => {
            refuse_meaningless_keys(
                rule,
                &[
                    "field",
                    "above",
                    "below",
                    "clear_above",
                    "clear_below",
                    "per",
                    "over",
                ],
                "a rule with `field`",
            )?;
            let subject = find_field(field)?;
            let rate = build_rate(rule)?;
            Ok(Watch::Value {
                subject,
                bound: build_threshold(rule, field, subject, rate)?,
                rate,
            })
        }
        (None, None, None) => reject(
            &rule.name,
            "the rule has nothing to check; add `field = \"temperature.gpu_celsius\"` with \
             `above` or `below`, `condition = \"throttled\"`, `limited_by = \"host\"`, or `absent \
             = true`",
        ),
    }
}

/// Returns an error for a key that is not in `allowed`. Such a key has no effect in this kind of
/// rule.
fn refuse_meaningless_keys(rule: &RuleTable, allowed: &[&str], what: &str) -> Result<(), Problem> {
    fn find_span<T>(value: Option<&Spanned<T>>) -> Option<Range<usize>> {
        value.map(Spanned::span)
    }
    let keys = [
        ("field", find_span(rule.field.as_ref())),
        ("condition", find_span(rule.condition.as_ref())),
        ("min_severity", find_span(rule.min_severity.as_ref())),
        ("limited_by", find_span(rule.limited_by.as_ref())),
        ("absent", find_span(rule.absent.as_ref())),
        ("above", find_span(rule.above.as_ref())),
        ("below", find_span(rule.below.as_ref())),
        ("clear_above", find_span(rule.clear_above.as_ref())),
        ("clear_below", find_span(rule.clear_below.as_ref())),
        ("per", find_span(rule.per.as_ref())),
        ("over", find_span(rule.over.as_ref())),
    ];
    let extra = keys
        .into_iter()
        .find_map(|(key, span)| Some((key, span.filter(|_| !allowed.contains(&key))?)));
    extra.map_or(Ok(()), |(key, span)| {
        Err((span, format!("`{key}` has no effect in {what}; remove it")))
    })
}

fn parse_condition_kind(word: &str) -> Result<&'static str, String> {
    let known = ConditionKind::TAGS
        .iter()
        .copied()
        .find(|known| *known == word);
    known.ok_or_else(|| {
        let words: Vec<&str> = ConditionKind::TAGS
            .iter()
            .copied()
            .chain([ANY_CONDITION])
            .collect();
        format!("unknown condition `{word}`; {}", suggest_word(word, &words))
    })
}

fn find_field(field: &Spanned<String>) -> Result<WatchedField, Problem> {
    let id = field.get_ref().as_str();
    let subjects = || {
        let gpu = GPU_FIELDS.iter().map(WatchedField::Gpu);
        gpu.chain(HOST_FIELDS.iter().map(WatchedField::Host))
    };
    subjects()
        .find(|subject| subject.id() == id)
        .ok_or_else(|| {
            let ids: Vec<&str> = subjects().map(WatchedField::id).collect();
            let cure = match suggest_word(id, &ids) {
                near if near.starts_with("did you mean") => near,
                // Only fields of the same group are suggested, because a list of all fields would
                // fill a page.
                _ => suggest_fields_of_group(id, &ids).unwrap_or_else(|| {
                    "the page \"Fields\" of the documentation lists all fields, such as \
                     temperature.gpu_celsius"
                        .to_owned()
                }),
            };
            (field.span(), format!("unknown field `{id}`; {cure}"))
        })
}

/// Suggests the fields of the same group; returns `None` if there are none.
fn suggest_fields_of_group(id: &str, ids: &[&str]) -> Option<String> {
    let (group, _) = id.rsplit_once('.').filter(|(group, _)| !group.is_empty())?;
    let near: Vec<&str> = ids
        .iter()
        .copied()
        .filter(|known| known.starts_with(&format!("{group}.")))
        .collect();
    (!near.is_empty()).then(|| format!("use one of {}", near.join(", ")))
}

fn build_rate(rule: &RuleTable) -> Result<Option<Rate>, Problem> {
    let Some(per) = &rule.per else {
        return rule.over.as_ref().map_or(Ok(None), |over| {
            reject(
                over,
                "`over` is the window of a rate; add `per = \"minute\"`, or remove `over`",
            )
        });
    };
    let over_ms = match &rule.over {
        None => DEFAULT_RATE_WINDOW_MS,
        Some(over) => check_time_range(over, RATE_WINDOW_RANGE)?.as_millis() as u64,
    };
    Ok(Some(Rate {
        per: *per.get_ref(),
        over_ms,
    }))
}

fn build_threshold(
    rule: &RuleTable,
    field: &Spanned<String>,
    subject: WatchedField,
    rate: Option<Rate>,
) -> Result<Threshold, Problem> {
    let (is_above, threshold, clear, other) = match (&rule.above, &rule.below) {
        (Some(above), None) => (true, above, &rule.clear_below, &rule.clear_above),
        (None, Some(below)) => (false, below, &rule.clear_above, &rule.clear_below),
        (Some(_), Some(below)) => {
            return reject(
                below,
                "a rule can have only one threshold; split it into two rules",
            );
        }
        (None, None) => {
            return reject(
                field,
                "a threshold is missing; add `above = ...` or `below = ...`",
            );
        }
    };
    let (side, opposite) = if is_above {
        ("above", "clear_below")
    } else {
        ("below", "clear_above")
    };
    if let Some(other) = other {
        let message =
            format!("this key has no effect in a rule with `{side}`; use `{opposite}` instead");
        return reject(other, message);
    }
    let unit = field_of!(subject, unit);
    let has_limit = rate.is_none() && field_of!(subject, limit).is_some();
    let scale = |amount: &Spanned<Amount>| {
        convert_amount(amount.get_ref(), unit, has_limit)
            .map_err(|message| (amount.span(), message))
    };
    let (value, is_share) = scale(threshold)?;
    check_range(threshold, value, is_share, rate, subject)?;
    let clear_value = match clear {
        None => value,
        Some(clear) => match scale(clear)? {
            (clear, is_same) if is_same == is_share => clear,
            _ => {
                let message = format!(
                    "`{side}` and `{opposite}` must either both be in % or \
                 both be absolute values"
                );
                return reject(clear, message);
            }
        },
    };
    if let Some(clear) = clear
        .as_ref()
        .filter(|_| (is_above && clear_value > value) || (!is_above && clear_value < value))
    {
        let message = format!(
            "the rule would clear before it fires; `{opposite}` must be {} `{side}`",
            if is_above { "at most" } else { "at least" }
        );
        return reject(clear, message);
    }
    Ok(Threshold {
        is_above,
        value,
        clear: clear_value,
        is_share,
    })
}

/// Converts an amount to its field's unit, or to percent of the field's limit. The returned flag is
/// `true` for a percentage. A number without a unit is in the field's unit.
///
/// # Errors
/// Returns an error that lists the units the field supports.
fn convert_amount(amount: &Amount, unit: Unit, has_limit: bool) -> Result<(f64, bool), String> {
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
        [] => format!("this field has no unit, but the value has `{typed}`; write only a number"),
        names => format!(
            "the unit `{typed}` does not fit this field; valid units are: {}",
            names.join(", ")
        ),
    })
}

/// Returns an error if the threshold is outside the range of possible readings, such as 200 for a
/// percentage. Such a threshold must be a mistake.
fn check_range(
    threshold: &Spanned<Amount>,
    value: f64,
    is_share: bool,
    rate: Option<Rate>,
    subject: WatchedField,
) -> Result<(), Problem> {
    let (least, largest) = field_of!(subject, range);
    if rate.is_none() && !is_share && !(least..=largest).contains(&value) {
        let message = format!(
            "{} is always between {least} and {largest}; choose a value in this range",
            subject.id()
        );
        return reject(threshold, message);
    }
    Ok(())
}

fn check_gpus(rule: &RuleTable, watch: &Watch) -> Result<Vec<GpuName>, Problem> {
    let Some(gpus) = &rule.gpus else {
        return Ok(Vec::new());
    };
    if watch.is_about_host() {
        return reject(
            gpus,
            "this field belongs to the host, not to a GPU; remove `gpus`",
        );
    }
    if gpus.get_ref().is_empty() {
        return reject(
            gpus,
            "`gpus` is empty; list at least one GPU, or remove `gpus` to include all GPUs",
        );
    }
    Ok(gpus.get_ref().clone())
}

fn check_message(message: &Spanned<String>) -> Result<String, Problem> {
    let text = message.get_ref().trim();
    if !is_short_line(text, MAX_MESSAGE_CHARS) {
        return reject(
            message,
            format!("a message must have 1 to {MAX_MESSAGE_CHARS} characters, on one line"),
        );
    }
    Ok(text.to_owned())
}

fn build_webhook(webhook: WebhookTable) -> Result<Receiver, Problem> {
    let (span, url) = match (webhook.url, webhook.url_file) {
        (Some(url), None) => (url.span(), url.into_inner()),
        (None, Some(file)) => {
            let read = PrivateFile::read(Path::new(file.get_ref()), Secrecy::Public)
                .map_err(|error| (file.span(), error.to_string()))?;
            (file.span(), read.text().trim().to_owned())
        }
        (Some(_), Some(file)) => {
            return reject(
                &file,
                "both `url` and `url_file` are set; remove one of them",
            );
        }
        (None, None) => {
            let message = "the webhook has no URL; add `url = \"https://...\"`, or `url_file` \
                           with the name of a file that contains it";
            return reject(&webhook.name, message);
        }
    };
    let address = WebhookAddress::parse(&url).map_err(|message| (span, message.to_owned()))?;
    Ok(Receiver {
        name: webhook.name.into_inner(),
        method: DeliveryMethod::Webhook {
            address,
            format: webhook.format,
        },
        timeout: check_timeout(webhook.timeout.as_ref())?,
    })
}

fn build_command(command: CommandTable) -> Result<Receiver, Problem> {
    let words = command.command.get_ref();
    if words
        .first()
        .is_none_or(|program| program.get_ref().is_empty())
    {
        let message = "the command is empty; start it with a program, such as [\"notify-send\", \
                       \"{rule}\", \"{text}\"]";
        return reject(&command.command, message);
    }
    for word in words {
        if let Some(unknown) = file::find_unknown_placeholder(word.get_ref()) {
            let cure = suggest_word(unknown, &file::PLACEHOLDER_NAMES);
            return reject(word, format!("unknown placeholder `{{{unknown}}}`; {cure}"));
        }
        if word.get_ref().contains('\0') {
            return reject(word, "a command cannot contain a zero byte; remove it");
        }
    }
    let program = &words[0];
    if file::has_placeholder(program.get_ref()) {
        let message = "the program cannot be a placeholder; write its name, and use placeholders \
                       only in its arguments";
        return reject(program, message);
    }
    let with_text = words
        .iter()
        .find(|word| file::has_text_placeholder(word.get_ref()));
    if let Some(word) = with_text.filter(|_| !file::only_displays_arguments(program.get_ref())) {
        let message = format!(
            "`{{text}}` contains names of processes, which any user can choose, and `{}` might \
             execute its arguments; use \"$GPUMON_ALERT_TEXT\" in a script instead. Only {} can \
             have `{{text}}` as an argument",
            program.get_ref(),
            file::DISPLAY_PROGRAMS.join(", ")
        );
        return reject(word, message);
    }
    let words = command
        .command
        .into_inner()
        .into_iter()
        .map(Spanned::into_inner)
        .collect();
    Ok(Receiver {
        name: command.name.into_inner(),
        timeout: check_timeout(command.timeout.as_ref())?,
        method: DeliveryMethod::Command { words },
    })
}

fn check_timeout(timeout: Option<&Spanned<RuleDuration>>) -> Result<Duration, Problem> {
    timeout.map_or(Ok(DEFAULT_TIMEOUT), |timeout| {
        check_time_range(timeout, TIMEOUT_RANGE)
    })
}

fn check_time_range(
    time: &Spanned<RuleDuration>,
    [least, most]: [Duration; 2],
) -> Result<Duration, Problem> {
    let given = time.get_ref().0;
    if (least..=most).contains(&given) {
        return Ok(given);
    }
    reject(
        time,
        format!(
            "the duration must be from {} s to {} s",
            least.as_secs(),
            most.as_secs()
        ),
    )
}

fn check_minimum_duration_ms(
    time: &Spanned<RuleDuration>,
    least: Duration,
) -> Result<u64, Problem> {
    let given = *time.get_ref();
    if given.0 >= least {
        return Ok(given.as_millis());
    }
    reject(
        time,
        format!("the duration must be at least {} s", least.as_secs()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threshold_is_absolute_or_percent_of_limit() {
        let read = |text: &str, unit, has_limit| {
            convert_amount(&Amount::parse(text).unwrap(), unit, has_limit)
        };
        assert_eq!(read("85 C", Unit::Celsius, false), Ok((85.0, false)));
        assert_eq!(read("85", Unit::Celsius, false), Ok((85.0, false)));
        assert_eq!(read("90 %", Unit::Bytes, true), Ok((90.0, true)));
        assert_eq!(read("90 %", Unit::Percent, true), Ok((90.0, false)));
        for (text, unit, cure) in [
            ("90 %", Unit::Bytes, "GiB"),
            ("90 F", Unit::Celsius, "C, °C"),
            ("3 lanes", Unit::Count, "write only a number"),
        ] {
            let error = read(text, unit, false).unwrap_err();
            assert!(error.contains(cure), "{text}: {error}");
        }
    }
}
