//! Completions of what nvidia-smi takes, behind `gpumon smi` and behind plain `gpumon`.
//!
//! clap's own scripts know neither long options with one dash nor lists of values, so that each shell gets a function of
//! its own, which is filled with what there is. It is for `gpumon` alone: the completions of NVIDIA's tool stay what they
//! are.

use clap_complete::Shell;
use gpumon_smi::{
    Arity,
    cli_spec::{CommandSpec, OptionSpec, ValueHint, commands},
};

/// The script with what nvidia-smi takes; `own` are the names of gpumon's commands.
pub(super) fn add(shell: Shell, script: &str, own: &[String]) -> String {
    let commands = commands();
    match shell {
        Shell::Zsh => {
            // The function that zsh loads is ours, and clap's is one that it calls.
            let (before, _) = script
                .rsplit_once("\nif [ \"$funcstack[1]\"")
                .unwrap_or((script, ""));
            let before = before.replacen("\n_gpumon() {", "\n_gpumon_own() {", 1);
            format!(
                "{before}\n{}{}",
                words(&commands, own),
                include_str!("smi.zsh")
            )
        }
        Shell::Fish => format!("{script}{}", fish(&commands, own)),
        _ => format!(
            "{script}\n{}{}",
            words(&commands, own),
            include_str!("smi.bash")
        ),
    }
}

fn words(commands: &[CommandSpec], own: &[String]) -> String {
    let either = |words: &[&str]| words.join("|");
    let own: Vec<&str> = own
        .iter()
        .map(String::as_str)
        .filter(|name| *name != "smi")
        .collect();
    include_str!("words.sh")
        .replace("@COMMANDS@", &either(&names(commands)))
        .replace("@OWN@", &either(&own))
        .replace("@PASSTHROUGH@", &either(&passthrough(commands)))
        .replace("@OPTIONS@", &options(commands))
        .replace("@VALUES@", &values(commands))
}

fn names(commands: &[CommandSpec]) -> Vec<&'static str> {
    commands[1..].iter().map(|command| command.name).collect()
}

fn passthrough(commands: &[CommandSpec]) -> Vec<&'static str> {
    commands[0]
        .options
        .iter()
        .flat_map(|option| option.passthrough.iter().copied())
        .collect()
}

/// A case for each command: a line for each spelling, as `-L:Every GPU`.
fn options(commands: &[CommandSpec]) -> String {
    let case = |name: &str, lines: Vec<String>| {
        format!(
            "        {name}) printf '%s\\n' \\\n            {} ;;",
            lines.join(" \\\n            ")
        )
    };
    let lines = |option: &OptionSpec, spellings: &[&str]| {
        spellings
            .iter()
            .map(|spelling| quoted(&format!("{spelling}:{}", option.about)))
            .collect::<Vec<_>>()
    };
    let passthrough = commands[0]
        .options
        .iter()
        .flat_map(|option| lines(option, &option.passthrough))
        .collect();
    let subcommands = commands[1..]
        .iter()
        .map(|command| quoted(&format!("{}:{}", command.name, command.about)))
        .collect();
    let of_each = commands.iter().map(|command| {
        case(
            command.name,
            command
                .options
                .iter()
                .flat_map(|option| lines(option, &option.spellings))
                .collect(),
        )
    });
    of_each
        .chain([
            case("passthrough", passthrough),
            case("commands", subcommands),
        ])
        .collect::<Vec<_>>()
        .join("\n")
}

fn values(commands: &[CommandSpec]) -> String {
    let mut cases = Vec::new();
    for command in commands {
        for option in command
            .options
            .iter()
            .filter(|option| option.arity == Arity::Required)
        {
            let keys: Vec<String> = option
                .spellings
                .iter()
                .map(|spelling| format!("'{} {spelling}'", command.name))
                .collect();
            let text = match &option.values {
                ValueHint::Any => "?".to_owned(),
                ValueHint::File => "/".to_owned(),
                ValueHint::One(words) => format!("1 {}", words.join(" ")),
                ValueHint::Commas(words) => format!(", {}", words.join(" ")),
                ValueHint::Letters(letters) => format!("+ {}", letters.join(" ")),
            };
            cases.push(format!(
                "        {}) echo {} ;;",
                keys.join("|"),
                quoted(&text)
            ));
        }
    }
    cases.join("\n")
}

/// As a word of any shell: fish takes a quote out of single quotes as the others do.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn fish(commands: &[CommandSpec], own: &[String]) -> String {
    let mut lines =
        vec!["complete -c gpumon -n 'not __fish_gpumon_smi_is own open start' -f".to_owned()];
    for command in &commands[1..] {
        let about = quoted(&command.about);
        lines.push(format!(
            "complete -c gpumon -n '__fish_gpumon_smi_is start smi-start' -f -a {} -d {about}",
            command.name
        ));
    }
    for command in commands {
        for option in &command.options {
            let condition = if command.name == "smi" {
                "smi smi-start"
            } else {
                command.name
            };
            lines.push(fish_line(condition, option, &option.spellings));
            if !option.passthrough.is_empty() {
                lines.push(fish_line("start open", option, &option.passthrough));
            }
        }
    }
    include_str!("smi.fish")
        .replace("@COMMANDS@", &names(commands).join(" "))
        .replace(
            "@OWN@",
            &own.iter()
                .filter(|name| *name != "smi")
                .cloned()
                .collect::<Vec<_>>()
                .join(" "),
        )
        .replace("@PASSTHROUGH@", &passthrough(commands).join(" "))
        .replace("@LINES@", &lines.join("\n"))
}

fn fish_line(condition: &str, option: &OptionSpec, spellings: &[&str]) -> String {
    let flags: Vec<String> = spellings
        .iter()
        // Options with one dash are words, also those of a letter, which cannot be put together.
        .map(|spelling| match spelling.strip_prefix("--") {
            Some(long) => format!("-l {long}"),
            None => format!("-o {}", spelling.trim_start_matches('-')),
        })
        .collect();
    let values = match &option.values {
        _ if option.arity == Arity::None => String::new(),
        ValueHint::Any if option.arity == Arity::Optional => String::new(),
        ValueHint::Any => " -x".to_owned(),
        ValueHint::File => " -r -F".to_owned(),
        ValueHint::One(words) => format!(" -x -a '{}'", words.join(" ")),
        ValueHint::Commas(words) => {
            format!(" -x -a '(__fish_gpumon_smi_list {})'", words.join(" "))
        }
        ValueHint::Letters(letters) => {
            format!(" -x -a '(__fish_gpumon_smi_letters {})'", letters.join(" "))
        }
    };
    let (flags, about) = (flags.join(" "), quoted(&option.about));
    format!("complete -c gpumon -n '__fish_gpumon_smi_is {condition}' {flags} -d {about}{values}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claps_function_for_zsh_becomes_one_that_ours_calls() {
        let script = "#compdef gpumon\n\n_gpumon() {\n    own\n}\n\nif [ \"$funcstack[1]\" = \"_gpumon\" ]; then\nfi\n";
        let all = add(Shell::Zsh, script, &[]);
        assert!(
            all.starts_with("#compdef gpumon\n\n_gpumon_own() {\n    own\n}\n"),
            "{all}"
        );
        assert_eq!(all.matches("\n_gpumon() {").count(), 1);
        assert_eq!(all.matches("$funcstack[1]").count(), 1);
    }

    #[test]
    fn nothing_is_left_to_be_filled_in() {
        let own = ["collect".to_owned(), "smi".to_owned()];
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let all = add(shell, "", &own);
            let is_gap =
                |word: &str| word.starts_with('@') && word.ends_with('@') && word.len() > 2;
            assert!(!all.split_whitespace().any(is_gap), "{shell}");
            assert!(
                all.contains("--query-gpu") && all.contains("clocks.current.graphics"),
                "{shell}"
            );
        }
    }

    #[test]
    fn a_quote_stays_one() {
        assert_eq!(quoted("NVIDIA's"), r"'NVIDIA'\''s'");
    }
}
