//! `gpumon alerts`: checks, tests and exports the rules of an alert file, and lists and silences
//! the rules of a running server.

use std::{
    fmt::Write as _,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Subcommand;
use gpumon_alerts::{
    evaluate::{RuleState, RuleStatus},
    notify::{self, Notification, deliver_notification, describe_missing_program},
    prometheus,
    rules::{AlertRules, DeliveryMethod, Receiver, Rule},
    wording,
};
use gpumon_probe::{
    model::{Alert, FiringAlert, GpuRef, Severity, now_ms},
    units::{AcceptedAmounts, format_duration},
    untrusted::escape_untrusted,
};
use gpumon_server::alerts::AlertStatus;
use gpumon_workload::suggest::suggest_word;
use rustix::system::uname;
use serde_json::json;

use crate::{
    exit::{Failure, Result, print_message, usage},
    local_server::ServerArgs,
    terminal::output::{print, print_raw},
};

/// Check, test and export alert rules, and silence those of a running server
///
/// Rules are defined in a TOML file, which `gpumon serve --alerts FILE` evaluates at every sample.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES, disable_help_subcommand = true)]
pub(crate) struct AlertsArgs {
    #[command(subcommand)]
    action: Action,
}

const NOTES: &str = "\
Examples:
  gpumon alerts check alerts.toml
      Check a file and list what each rule watches for.
  gpumon alerts test alerts.toml --receiver slack
      Send a test alert to one receiver.
  gpumon alerts silence 'GPU is hot' 2h
      Silence this rule of the running server for two hours.
  gpumon alerts export --prometheus alerts.toml > gpumon.rules.yml
      Write the same rules for Prometheus.

Environment:
  GPUMON_CONTROL  default of --control

Exit codes: 0 success, 1 no server, request refused or alert not delivered, 2 invalid argument or alert file";

#[derive(Debug, Subcommand)]
enum Action {
    /// Check an alert file and list what each rule watches for
    Check {
        /// Alert file to check
        file: PathBuf,
    },
    /// Send a test alert to the receivers of an alert file
    Test {
        /// Alert file with the receivers
        file: PathBuf,

        /// Test only this receiver; repeatable
        #[arg(long, value_name = "NAME")]
        receiver: Vec<String>,
    },
    /// Print the rules of an alert file for another program
    ///
    /// Rules that the other program cannot express are left out, and named on standard error.
    Export {
        /// Print a Prometheus rule file, based on the metrics of /metrics
        #[arg(long, required = true)]
        prometheus: bool,

        /// Alert file to export
        file: PathBuf,
    },
    /// List the rules of a running server and the alerts that fire
    List {
        /// Print the rules as JSON
        #[arg(long)]
        json: bool,

        #[command(flatten)]
        server: ServerArgs,
    },
    /// Silence a rule for a while: its alerts notify no receiver
    ///
    /// Alerts of the rule are still listed. The silence is lost when the server ends.
    Silence {
        /// Name of the rule to silence
        rule: String,

        /// Duration of the silence, for example 30m, 2h or 7d; `off` ends it
        #[arg(value_parser = parse_time)]
        time: SilenceTime,

        #[command(flatten)]
        server: ServerArgs,
    },
}

pub(crate) fn run(args: &AlertsArgs) -> Result {
    match &args.action {
        Action::Check { file } => check_rule_file(file),
        Action::Test { file, receiver } => send_test_alert(file, receiver),
        Action::Export { file, .. } => print_prometheus_rules(file),
        Action::List { json, server } => print_rules(server, *json),
        Action::Silence { rule, time, server } => silence_rule(server, rule, *time),
    }
}

/// Reads and validates the rules of a file.
pub(crate) fn read_rules(file: &Path) -> Result<AlertRules> {
    AlertRules::read(file).map_err(Failure::from_usage_error)
}

fn check_rule_file(file: &Path) -> Result {
    let AlertRules { rules, receivers } = read_rules(file)?;
    let rule_line = |rule: &Rule| format!("{}: {}\n", rule.name, describe_rule(rule));
    let receiver_line =
        |receiver: &Receiver| format!("{}: {}\n", receiver.name, receiver.describe_kind());
    let lines = rules.iter().map(rule_line);
    let lines = lines.chain(receivers.iter().map(receiver_line));
    print_raw(&lines.collect::<String>())?;
    if rules.is_empty() {
        print_message(&format!(
            "{} has no rules, so it causes no alerts: add a [[rule]]",
            file.display()
        ));
    }
    // The following messages are not errors: a rule may intentionally have no receiver, and a
    // program that is missing on this machine may exist on the machine of the server.
    for rule in rules.iter().filter(|rule| rule.notify.is_empty()) {
        print_message(&format!(
            "{}: this rule notifies no receiver; its alerts are shown only on the page and in \
             JupyterLab",
            rule.name
        ));
    }
    for receiver in &receivers {
        if let Some(why) = describe_missing_program(receiver) {
            print_message(&format!("{}: {why}", receiver.name));
        }
    }
    if has_secret(&receivers) && is_world_readable(file) {
        let path = file.display();
        print_message(&format!(
            "{path} can be read by every user and may contain a webhook URL that must stay private: run `chmod \
             o-r {path}`, or move the URL to a private file and give its path as `url_file`"
        ));
    }
    Ok(())
}

fn describe_rule(rule: &Rule) -> String {
    let severity = wording::severity_word(rule.severity);
    let notified = match rule.notify.as_slice() {
        [] => String::new(),
        some => format!(", notifies {}", some.join(", ")),
    };
    format!(
        "{} ({severity}{notified})",
        wording::describe_check(&rule.check)
    )
}

fn has_secret(receivers: &[Receiver]) -> bool {
    receivers
        .iter()
        .any(|receiver| matches!(receiver.method, DeliveryMethod::Webhook { .. }))
}

fn is_world_readable(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|known| known.permissions().mode() & 0o004 != 0)
}

fn print_prometheus_rules(file: &Path) -> Result {
    let rules = read_rules(file)?;
    let exported = prometheus::export(&rules);
    print_raw(&exported.text)?;
    for note in exported.notes {
        print_message(&note);
    }
    Ok(())
}

const ACCEPTED_TIMES: AcceptedAmounts<Duration> = AcceptedAmounts::accept_durations(
    Duration::from_secs(1),
    Duration::from_hours(30 * 24),
    "a time from 1 second to 30 days, such as 30m, 2h or 7d, or the word off",
);

/// The duration of a silence; `None` ends it.
#[derive(Debug, Clone, Copy)]
struct SilenceTime(Option<Duration>);

fn parse_time(text: &str) -> Result<SilenceTime, String> {
    if text == "off" {
        return Ok(SilenceTime(None));
    }
    ACCEPTED_TIMES
        .parse(text)
        .map(|time| SilenceTime(Some(time)))
}

fn silence_rule(server: &ServerArgs, rule: &str, SilenceTime(time): SilenceTime) -> Result {
    let for_ms = time.map_or(0, |time| time.as_millis() as u64);
    let silence = json!({ "rule": rule, "for_ms": for_ms }).to_string();
    let reply = server.request(
        "POST",
        "/api/v1/alerts/silence",
        &silence,
        "does not support alerts",
    )?;
    let status: AlertStatus = reply.parse()?;
    // If the server still reports the rule as silenced after the silence was ended, the alert file
    // silences the rule.
    if time.is_none()
        && status
            .rules
            .iter()
            .any(|known| known.name == rule && known.silenced)
    {
        print_message(&format!(
            "{rule} is still silenced by the alert file: change `silence` in \
         the rule, then reload the server"
        ));
    }
    Ok(())
}

fn print_rules(server: &ServerArgs, json: bool) -> Result {
    let reply = server.request("GET", "/api/v1/alerts", "", "does not support alerts")?;
    if json {
        // Printing the raw reply keeps fields that a newer server adds.
        return print_raw(&format!("{}\n", reply.body.trim()));
    }
    let status: AlertStatus = reply.parse()?;
    print(&format_status(&status, now_ms()))
}

/// Returns one line per rule, each followed by indented lines for the GPUs on which the rule is
/// active, and then one line per receiver.
fn format_status(status: &AlertStatus, now_ms: u64) -> String {
    let mut text = String::new();
    // Results of `writeln!` are ignored, because writing to a string cannot fail.
    for RuleStatus {
        name,
        severity,
        text: watch,
        silenced,
        active,
        ..
    } in &status.rules
    {
        let state = match active.iter().any(|place| place.state == RuleState::Firing) {
            true => "firing",
            false if active.is_empty() => "inactive",
            false => "pending",
        };
        let silenced = if *silenced { ", silenced" } else { "" };
        let severity = wording::severity_word(*severity);
        let _ = writeln!(
            text,
            "{state:8}  {}: {watch} ({severity}{silenced})",
            escape_untrusted(name)
        );
        for place in active {
            let gpu = place
                .gpu
                .as_ref()
                .map(|GpuRef { index, .. }| format!("GPU {index}: "))
                .unwrap_or_default();
            let since = format_duration(now_ms.saturating_sub(place.since_ms));
            let _ = writeln!(
                text,
                "          {gpu}{}, since {since}",
                escape_untrusted(&place.text)
            );
        }
    }
    for receiver in &status.receivers {
        let (sent, failed, waiting) = (receiver.sent, receiver.failed, receiver.waiting);
        let name = escape_untrusted(&receiver.name);
        let _ = writeln!(
            text,
            "receiver  {name}: {}; {sent} sent, {failed} failed, {waiting} waiting",
            receiver.kind
        );
        if let Some(error) = &receiver.error {
            let _ = writeln!(text, "          {}", escape_untrusted(error));
        }
        if let Some(given_up) = &receiver.given_up {
            let _ = writeln!(
                text,
                "          not delivered: {}",
                escape_untrusted(given_up)
            );
        }
    }
    if let Some(error) = &status.error {
        let _ = writeln!(text, "{}", escape_untrusted(error));
    }
    if status.rules.is_empty() && status.error.is_none() {
        text += if status.has_file {
            "no alert rules: the server's alert file contains none; add a [[rule]] to the file, \
             then reload the server\n"
        } else {
            "no alert rules; start the server with --alerts FILE\n"
        };
    }
    text
}

/// Sends a test alert to each receiver, or only to the receivers named in `only`.
fn send_test_alert(file: &Path, only: &[String]) -> Result {
    let receivers = read_rules(file)?.receivers;
    if receivers.is_empty() {
        let message = "the file has no receiver; add a [[webhook]] or a [[command]]";
        return Err(usage!(message));
    }
    let known = || receivers.iter().map(|receiver| receiver.name.as_str());
    if let Some(name) = only
        .iter()
        .find(|name| !known().any(|known| known == *name))
    {
        let others = format!("there are {}", known().collect::<Vec<_>>().join(", "));
        let cure = suggest_word(name, known(), &others);
        return Err(usage!("there is no receiver named '{name}': {cure}"));
    }
    let mut has_failed = false;
    for receiver in receivers
        .iter()
        .filter(|receiver| only.is_empty() || only.contains(&receiver.name))
    {
        match deliver_notification(
            receiver,
            &make_test_notification(receiver),
            &uname().nodename().to_string_lossy(),
        ) {
            Ok(()) => print_message(&format!("{}: sent", receiver.name)),
            Err(failure) => {
                has_failed = true;
                print_message(&format!("{}: {}", receiver.name, failure.message));
            }
        }
    }
    Failure::check_exit_code(u8::from(has_failed))
}

/// Returns a test alert with a text that states that nothing is wrong.
fn make_test_notification(receiver: &Receiver) -> Notification {
    let at_ms = now_ms();
    let alert = Alert {
        rule: "test".to_owned(),
        severity: Severity::Notice,
        since_ms: at_ms,
        text: format!("Test alert for {}: nothing is wrong", receiver.name),
        silenced: false,
        names_processes: false,
    };
    Notification {
        status: notify::AlertStatus::Firing,
        at_ms,
        alert: FiringAlert { gpu: None, alert },
    }
}

#[cfg(test)]
mod tests {
    use gpumon_alerts::{evaluate::PlaceStatus, notify::ReceiverStatus};

    use super::*;

    #[test]
    fn rules_are_listed_with_firing_gpus() {
        let place = |index, state| PlaceStatus {
            gpu: Some(GpuRef { index, uuid: None }),
            state,
            since_ms: 1000,
            text: "Temperature 87 °C, above 85 °C".to_owned(),
            names_processes: false,
        };
        let rule = |name: &str, silenced, active| RuleStatus {
            name: name.to_owned(),
            severity: Severity::Critical,
            text: "Temperature above 85 °C".to_owned(),
            silenced,
            silenced_until_ms: None,
            active,
        };
        let active = vec![place(0, RuleState::Pending), place(1, RuleState::Firing)];
        let receivers = vec![ReceiverStatus {
            name: "slack".to_owned(),
            kind: "webhook (slack)".to_owned(),
            sent: 2,
            failed: 0,
            waiting: 1,
            error: Some("the webhook answers with status 503".to_owned()),
            given_up: Some(
                "Warning: hot: GPU 0: Temperature 87 °C: given up after 20 attempts".to_owned(),
            ),
        }];
        let status = AlertStatus {
            rules: vec![rule("hot", true, active), rule("a", false, vec![])],
            receivers,
            error: None,
            has_file: true,
        };
        let expected = "\
firing    hot: Temperature above 85 °C (critical, silenced)
          GPU 0: Temperature 87 °C, above 85 °C, since 45 s
          GPU 1: Temperature 87 °C, above 85 °C, since 45 s
inactive  a: Temperature above 85 °C (critical)
receiver  slack: webhook (slack); 2 sent, 0 failed, 1 waiting
          the webhook answers with status 503
          not delivered: Warning: hot: GPU 0: Temperature 87 °C: given up after 20 attempts
";
        assert_eq!(format_status(&status, 46_000), expected);
        assert!(format_status(&AlertStatus::default(), 0).contains("--alerts FILE"));
        assert!(
            format_status(
                &AlertStatus {
                    has_file: true,
                    ..AlertStatus::default()
                },
                0
            )
            .contains("alert file contains none")
        );
    }
}
