//! `gpumon config show`: which value each setting has, and where it comes from.

use std::{env, ffi::OsString};

use serde_json::{Value, json};

use crate::{
    config::{Effective, Origin, Refusal, TABLES, effective},
    exit::{Failure, refuse},
    options::SourceArgs,
    terminal::output::print_report,
};

/// `command` is a command line, of which only the settings are shown; all settings where it is empty.
pub(super) fn run(command: &[OsString], json: bool) -> Result<(), Failure> {
    let settings = match settings(command) {
        Ok(settings) => settings,
        Err(refusal) => {
            refuse(refusal);
            return Err(Failure::reported(2));
        }
    };
    print_report(
        json,
        || json!({ "settings": settings.iter().map(object).collect::<Vec<_>>() }),
        |_| format_settings(&settings),
    )
}

fn format_settings(settings: &[Effective]) -> String {
    let mut table = None;
    let lines = settings.iter().map(|setting| {
        let heading = if setting.key.table == table {
            String::new()
        } else {
            table = setting.key.table;
            format!("\n[{}]\n", table.unwrap_or_default())
        };
        let name = setting.key.name();
        match &setting.value {
            Some(value) => format!("{heading}{name} = {value}  # {}\n", told(&setting.origin)),
            None => format!("{heading}# {name} is not set\n"),
        }
    });
    lines.collect()
}

fn settings(command: &[OsString]) -> Result<Vec<Effective>, Refusal> {
    let all: Vec<OsString> = env::args_os().skip(1).collect();
    // What was typed before, for all commands.
    let (general, _) = SourceArgs::told_apart(&all[..all.len().saturating_sub(command.len())]);
    let begun = [vec![OsString::from("gpumon")], general].concat();
    if !command.is_empty() {
        return effective(&[&begun, command].concat());
    }
    let mut settings: Vec<Effective> = Vec::new();
    for table in TABLES {
        let of_table = effective(&[begun.clone(), vec![table.into()]].concat())?;
        // Those of all commands are the same in each.
        settings.extend(
            of_table
                .into_iter()
                .filter(|setting| setting.key.table.is_some() || table == TABLES[0]),
        );
    }
    Ok(settings)
}

fn told(origin: &Origin) -> String {
    match origin {
        Origin::Default => "default".to_owned(),
        Origin::File { path, line } => format!("{path}:{line}"),
        Origin::Variable { name } => format!("variable {name}"),
        Origin::Flag { name } => format!("option {name}"),
    }
}

fn object(setting: &Effective) -> Value {
    let value = setting
        .value
        .as_ref()
        .and_then(|value| toml::from_str::<toml::Table>(&format!("value = {value}")).ok());
    json!({
        "table": setting.key.table,
        "key": setting.key.name(),
        "value": value.and_then(|mut table| table.remove("value")),
        "origin": setting.origin,
    })
}
