//! `gpumon alerts test`: sends a test alert to each receiver.

use std::path::Path;

use gpumon_alerts::{
    notify::{AlertStatus, Notification, deliver_notification},
    rules::Receiver,
};
use gpumon_probe::model::{Alert, FiringAlert, Severity, now_ms};
use gpumon_workload::suggest;
use rustix::system::uname;

use crate::exit::{Failure, print_message, usage};

pub(super) fn send_test_alert(file: &Path, only: &[String]) -> Result<(), Failure> {
    let receivers = super::read_rules(file)?.receivers;
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
        let cure = suggest::suggest_word(name, known(), &others);
        return Err(usage!("no receiver '{name}': {cure}"));
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
        status: AlertStatus::Firing,
        at_ms,
        alert: FiringAlert { gpu: None, alert },
    }
}
