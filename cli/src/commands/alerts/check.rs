//! `gpumon alerts check`: whether a file is right, and what it means.

use std::{
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use gpumon_alerts::{
    describe,
    notify::missing_program,
    rules::{AlertRules, Receiver, Rule, Way},
};

use crate::exit::{Failure, say};

pub(super) fn run(file: &Path) -> Result<(), Failure> {
    let AlertRules { rules, receivers } = super::read(file)?;
    let mut out = io::stdout().lock();
    for rule in &rules {
        writeln!(out, "{}: {}", rule.name, told(rule))?;
    }
    for receiver in &receivers {
        writeln!(out, "{}: {}", receiver.name, receiver.kind())?;
    }
    if rules.is_empty() {
        say(&format!(
            "{} has no rules, so nothing is alerted: add a [[rule]]",
            file.display()
        ));
    }
    // What may be meant so, or may be otherwise where the server runs.
    for rule in rules.iter().filter(|rule| rule.notify.is_empty()) {
        say(&format!(
            "{}: no receiver is notified; its alerts are shown on the page and in JupyterLab",
            rule.name
        ));
    }
    for (receiver, why) in receivers
        .iter()
        .filter_map(|receiver| Some((receiver, missing_program(receiver)?)))
    {
        say(&format!("{}: {why}", receiver.name));
    }
    if has_secret(&receivers) && is_open(file) {
        let path = file.display();
        say(&format!(
            "{path} can be read by every user and may have the address of a webhook: run `chmod o-r {path}`, or use url_file"
        ));
    }
    Ok(())
}

fn told(rule: &Rule) -> String {
    let severity = describe::severity_word(rule.severity);
    let notified = match rule.notify.as_slice() {
        [] => String::new(),
        some => format!(", notifies {}", some.join(", ")),
    };
    format!("{} ({severity}{notified})", describe::watch(&rule.check))
}

fn has_secret(receivers: &[Receiver]) -> bool {
    receivers
        .iter()
        .any(|receiver| matches!(receiver.way, Way::Webhook { .. }))
}

fn is_open(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|known| known.permissions().mode() & 0o004 != 0)
}
