//! `gpumon alerts test`: sends a test alert to each receiver.

use std::path::Path;

use gpumon_alerts::{
    notify::{Notification, Status, deliver},
    rules::Receiver,
};
use gpumon_probe::model::{Alert, FiringAlert, Severity, now_ms};
use gpumon_workload::suggest;
use rustix::system::uname;

use crate::exit::{Failure, say, usage};

pub(super) fn run(file: &Path, only: &[String]) -> Result<(), Failure> {
    let receivers = super::read(file)?.receivers;
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
        let cure = suggest::did_you_mean(name, known(), &others);
        return Err(usage!("no receiver '{name}': {cure}"));
    }
    let mut has_failed = false;
    for receiver in receivers
        .iter()
        .filter(|receiver| only.is_empty() || only.contains(&receiver.name))
    {
        match deliver(
            receiver,
            &notification(receiver),
            &uname().nodename().to_string_lossy(),
        ) {
            Ok(()) => say(&format!("{}: sent", receiver.name)),
            Err(failure) => {
                has_failed = true;
                say(&format!("{}: {}", receiver.name, failure.message));
            }
        }
    }
    Failure::unless_success(u8::from(has_failed))
}

/// Returns a test alert, whose text states that nothing is wrong.
fn notification(receiver: &Receiver) -> Notification {
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
        status: Status::Firing,
        at_ms,
        alert: FiringAlert { gpu: None, alert },
    }
}
