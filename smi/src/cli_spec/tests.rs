//! Tests that all suggested values are valid and that all options have a description.

use super::*;
use crate::{command_line, subcommand::Switches};

fn split_words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn find_option(command: &str, spelling: &str) -> OptionSpec {
    let command = list_commands()
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
fn every_option_has_a_description() {
    for command in list_commands() {
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
fn completions_omit_refused_options() {
    let commands = list_commands();
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
fn every_value_proposed_by_completion_parses() {
    let ValueHint::Commas(fields) = find_option("smi", "--query-gpu").values else {
        panic!("fields are a list")
    };
    assert!(
        fields.len() > 198 && fields.iter().any(|field| field == "gpu_name"),
        "aliases, too: {fields:?}"
    );
    for option in list_commands().remove(0).options {
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
                command_line::parse(&split_words(&format!("{before}{value}"))).is_ok(),
                "{before}{value}"
            );
        }
    }
}

#[test]
fn completion_values_of_subcommands_are_listed() {
    let metrics = find_option("dmon", "--gpm-metrics").values;
    let ValueHint::Commas(metrics) = metrics else {
        panic!("metrics are a list: {metrics:?}")
    };
    assert!(
        metrics.contains(&"13".to_owned()) && !metrics.contains(&"14".to_owned()),
        "14 has no name"
    );
    let letters = |text: &str| ValueHint::Letters(text.chars().map(String::from).collect());
    assert_eq!(find_option("dmon", "-s").values, letters("pucvmet"));
    assert_eq!(find_option("pmon", "-s").values, letters("um"));
    assert_eq!(find_option("dmon", "-f").values, ValueHint::File);
    for command in &SUBCOMMANDS {
        let switches = command.syntax.switches();
        for switch in &switches {
            let typed = split_words(&format!("{} 0", switch.spellings[0]));
            let count = if switch.arity == Arity::None { 1 } else { 2 };
            assert!(
                Switches::parse(&switches, &typed[..count]).is_ok(),
                "{} {typed:?}",
                command.syntax.name
            );
        }
    }
}

#[test]
fn gpumon_options_are_not_passed_to_nvidia_smi() {
    assert!(
        find_option("smi", "-i").passthrough.is_empty()
            && find_option("smi", "-h").passthrough.is_empty()
    );
    assert_eq!(find_option("smi", "-L").passthrough, ["-L", "--list-gpus"]);
}
