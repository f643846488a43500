//! Tests that all suggested values are valid and all options have a description.

use super::*;
use crate::{command_line, switches::Switches};

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn option(command: &str, spelling: &str) -> OptionSpec {
    let command = commands()
        .into_iter()
        .find(|known| known.name == command)
        .unwrap();
    command
        .options
        .into_iter()
        .find(|option| option.spellings.contains(&spelling))
        .unwrap()
}

#[test]
fn everything_is_explained() {
    for command in commands() {
        assert!(
            command.name == "smi" || !command.about.is_empty(),
            "{}",
            command.name
        );
        for option in &command.options {
            let (about, spellings) = (&option.about, &option.spellings);
            assert!(
                about.len() > 3 && !about.ends_with(','),
                "{} {spellings:?}: {about:?}",
                command.name
            );
        }
    }
}

#[test]
fn what_is_refused_is_not_proposed() {
    let commands = commands();
    assert!(
        !commands
            .iter()
            .any(|command| ["mig", "replay", "clocks"].contains(&command.name))
    );
    let all: Vec<_> = commands
        .iter()
        .flat_map(|command| command.options.iter().flat_map(|option| &option.spellings))
        .collect();
    for refused in [
        "-pm",
        "--power-limit",
        "-col",
        "--debug",
        "--unit",
        "-re",
        "-ec",
        "-caa",
    ] {
        assert!(!all.contains(&&refused), "{refused}");
    }
    for supported in [
        "-q",
        "-lms",
        "--query-gpu",
        "-eow",
        "-p2p",
        "--gpm-metrics",
        "-gt",
    ] {
        assert!(all.contains(&&supported), "{supported}");
    }
}

#[test]
fn every_value_that_is_proposed_is_read() {
    let ValueHint::Commas(fields) = option("smi", "--query-gpu").values else {
        panic!("fields are a list")
    };
    assert!(
        fields.len() > 198 && fields.iter().any(|field| field == "gpu_name"),
        "aliases, too: {fields:?}"
    );
    for option in commands().remove(0).options {
        let ValueHint::Commas(values) = &option.values else {
            continue;
        };
        let before = match option.spellings[..] {
            ["-d", ..] => "-q -d ",
            ["--format"] => "--query-gpu=name --format=",
            [query] => &format!("{query}="),
            _ => panic!("{:?}", option.spellings),
        };
        for value in values {
            assert!(
                command_line::parse(&words(&format!("{before}{value}"))).is_ok(),
                "{before}{value}"
            );
        }
    }
}

#[test]
fn commands_take_what_is_proposed() {
    let metrics = option("dmon", "--gpm-metrics").values;
    let ValueHint::Commas(metrics) = metrics else {
        panic!("metrics are a list: {metrics:?}")
    };
    assert!(
        metrics.contains(&"13".to_owned()) && !metrics.contains(&"14".to_owned()),
        "14 has no name"
    );
    let letters = |text: &str| ValueHint::Letters(text.chars().map(String::from).collect());
    assert_eq!(option("dmon", "-s").values, letters("pucvmet"));
    assert_eq!(option("pmon", "-s").values, letters("um"));
    assert_eq!(option("dmon", "-f").values, ValueHint::File);
    for command in &SUBCOMMANDS {
        let switches = command.form.switches();
        for switch in &switches {
            let typed = words(&format!("{} 0", switch.spellings[0]));
            let count = if switch.arity == Arity::None { 1 } else { 2 };
            assert!(
                Switches::parse(&switches, &typed[..count]).is_ok(),
                "{} {typed:?}",
                command.form.name
            );
        }
    }
}

#[test]
fn plain_gpumon_keeps_its_own_options() {
    assert!(
        option("smi", "-i").passthrough.is_empty() && option("smi", "-h").passthrough.is_empty()
    );
    assert_eq!(option("smi", "-L").passthrough, ["-L", "--list-gpus"]);
}
