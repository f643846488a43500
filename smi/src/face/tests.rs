//! What is proposed can be typed, and is explained.

use super::*;
use crate::{command_line, switches::Switches};

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn option(face: &str, spelling: &str) -> Word {
    let face = faces().into_iter().find(|known| known.name == face).unwrap();
    face.options.into_iter().find(|option| option.spellings.contains(&spelling)).unwrap()
}

#[test]
fn everything_is_explained() {
    for face in faces() {
        assert!(face.name == "smi" || !face.about.is_empty(), "{}", face.name);
        for option in &face.options {
            let (about, spellings) = (&option.about, &option.spellings);
            assert!(about.len() > 3 && !about.ends_with(','), "{} {spellings:?}: {about:?}", face.name);
        }
    }
}

#[test]
fn what_is_refused_is_not_proposed() {
    let faces = faces();
    assert!(!faces.iter().any(|face| ["daemon", "replay", "prm", "base-clocks"].contains(&face.name)));
    let all: Vec<_> = faces.iter().flat_map(|face| face.options.iter().flat_map(|option| &option.spellings)).collect();
    for refused in ["-pm", "--power-limit", "-col", "--debug", "-cgi", "-re", "-ec", "--modify", "-caa"] {
        assert!(!all.contains(&&refused), "{refused}");
    }
    for heeded in ["-q", "-lms", "--query-gpu", "-eow", "-p2p", "--gpm-metrics", "-gt", "-lgip"] {
        assert!(all.contains(&&heeded), "{heeded}");
    }
}

#[test]
fn every_value_that_is_proposed_is_read() {
    let Proposed::Commas(fields) = option("smi", "--query-gpu").values else { panic!("fields are a list") };
    assert!(fields.len() > 198 && fields.iter().any(|field| field == "gpu_name"), "aliases, too: {fields:?}");
    for option in faces().remove(0).options {
        let Proposed::Commas(values) = &option.values else { continue };
        let before = match option.spellings[..] {
            ["-d", ..] => "-q -d ",
            ["--format"] => "--query-gpu=name --format=",
            [query] => &format!("{query}="),
            _ => panic!("{:?}", option.spellings),
        };
        for value in values {
            assert!(command_line::parse(&words(&format!("{before}{value}"))).is_ok(), "{before}{value}");
        }
    }
}

#[test]
fn commands_take_what_is_proposed() {
    let metrics = option("dmon", "--gpm-metrics").values;
    let Proposed::Commas(metrics) = metrics else { panic!("metrics are a list: {metrics:?}") };
    assert!(metrics.contains(&"13".to_owned()) && !metrics.contains(&"14".to_owned()), "14 has no name");
    let letters = |text: &str| Proposed::Letters(text.chars().map(String::from).collect());
    assert_eq!(option("dmon", "-s").values, letters("pucvmet"));
    assert_eq!(option("pmon", "-s").values, letters("um"));
    assert_eq!(option("dmon", "-f").values, Proposed::File);
    for command in subcommand::all() {
        for switch in command.typing.switches {
            let typed = words(&format!("{} 0", switch.spellings[0]));
            let count = if switch.takes == Takes::Nothing { 1 } else { 2 };
            assert!(Switches::parse(command.typing.switches, &typed[..count]).is_ok(), "{} {typed:?}", command.name);
        }
    }
}

#[test]
fn plain_gpumon_keeps_its_own_options() {
    assert!(option("smi", "-i").habit.is_empty() && option("smi", "-h").habit.is_empty());
    assert_eq!(option("smi", "-L").habit, ["-L", "--list-gpus"]);
}
