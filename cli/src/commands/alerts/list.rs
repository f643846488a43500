//! `gpumon alerts list`: the rules of the running server, and what fires.

use std::fmt::Write as _;

use gpumon_alerts::{
    describe,
    evaluate::{RuleState, RuleStatus},
};
use gpumon_probe::{
    model::{GpuRef, now_ms},
    units::duration,
    untrusted::escaped,
};
use gpumon_server::alerts::AlertStatus;

use crate::{
    exit::Failure,
    local::ServerArgs,
    terminal::output::{print, print_raw},
};

pub(super) fn run(server: &ServerArgs, json: bool) -> Result<(), Failure> {
    let reply = server.request("GET", "/api/v1/alerts", "", "has no alerts")?;
    if json {
        // Fields that a newer server adds are kept.
        return print_raw(&format!("{}\n", reply.body.trim()));
    }
    let status: AlertStatus = reply.parse()?;
    print(&table(&status, now_ms()))
}

/// A line for each rule, with a line below it for each place where it is not inactive, and one for each receiver.
fn table(status: &AlertStatus, now_ms: u64) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
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
        let severity = describe::severity_word(*severity);
        let _ = writeln!(
            text,
            "{state:8}  {}: {watch} ({severity}{silenced})",
            escaped(name)
        );
        for place in active {
            let gpu = place
                .gpu
                .as_ref()
                .map(|GpuRef { index, .. }| format!("GPU {index}: "))
                .unwrap_or_default();
            let since = duration(now_ms.saturating_sub(place.since_ms));
            let _ = writeln!(
                text,
                "          {gpu}{}, since {since}",
                escaped(&place.text)
            );
        }
    }
    for receiver in &status.receivers {
        let (sent, failed, waiting) = (receiver.sent, receiver.failed, receiver.waiting);
        let name = escaped(&receiver.name);
        let _ = writeln!(
            text,
            "receiver  {name}: {}; {sent} sent, {failed} failed, {waiting} waiting",
            receiver.kind
        );
        if let Some(error) = &receiver.error {
            let _ = writeln!(text, "          {}", escaped(error));
        }
        if let Some(given_up) = &receiver.given_up {
            let _ = writeln!(text, "          not delivered: {}", escaped(given_up));
        }
    }
    if let Some(error) = &status.error {
        let _ = writeln!(text, "{}", escaped(error));
    }
    if status.rules.is_empty() && status.error.is_none() {
        text += if status.has_file {
            "no alert rules: the server's alert file has none; add a [[rule]] and reload it\n"
        } else {
            "no alert rules; start the server with --alerts FILE\n"
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use gpumon_alerts::{evaluate::PlaceStatus, notify::ReceiverStatus};
    use gpumon_probe::model::Severity;

    use super::*;

    #[test]
    fn rules_are_listed_with_where_they_fire() {
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
        assert_eq!(table(&status, 46_000), expected);
        assert!(table(&AlertStatus::default(), 0).contains("--alerts FILE"));
        assert!(
            table(
                &AlertStatus {
                    has_file: true,
                    ..AlertStatus::default()
                },
                0
            )
            .contains("alert file has none")
        );
    }
}
