//! Completions of what nvidia-smi takes, behind `gpumon smi` and behind plain `gpumon`.
//!
//! clap's own scripts know neither long options with one dash nor lists of values, so that each shell gets a function of
//! its own, which is filled with what there is. It is for `gpumon` alone: the completions of NVIDIA's tool stay what they
//! are.

use clap_complete::Shell;
use gpumon_smi::{
    Takes,
    face::{Face, Proposed, Word, faces},
};

/// The script with what nvidia-smi takes; `own` are the names of gpumon's commands.
pub(super) fn add(shell: Shell, script: &str, own: &[String]) -> String {
    let faces = faces();
    match shell {
        Shell::Zsh => {
            // The function that zsh loads is ours, and clap's is one that it calls.
            let (before, _) = script.rsplit_once("\nif [ \"$funcstack[1]\"").unwrap_or((script, ""));
            let before = before.replacen("\n_gpumon() {", "\n_gpumon_own() {", 1);
            format!("{before}\n{}{}", words(&faces, own), include_str!("smi.zsh"))
        }
        Shell::Fish => format!("{script}{}", fish(&faces, own)),
        _ => format!("{script}\n{}{}", words(&faces, own), include_str!("smi.bash")),
    }
}

/// The part that bash and zsh share.
fn words(faces: &[Face], own: &[String]) -> String {
    let either = |words: &[&str]| words.join("|");
    let own: Vec<&str> = own.iter().map(String::as_str).filter(|name| *name != "smi").collect();
    include_str!("words.sh")
        .replace("@COMMANDS@", &either(&commands(faces)))
        .replace("@OWN@", &either(&own))
        .replace("@HABIT@", &either(&habit(faces)))
        .replace("@OPTIONS@", &options(faces))
        .replace("@VALUES@", &values(faces))
}

fn commands(faces: &[Face]) -> Vec<&'static str> {
    faces[1..].iter().map(|face| face.name).collect()
}

fn habit(faces: &[Face]) -> Vec<&'static str> {
    faces[0].options.iter().flat_map(|option| option.habit.iter().copied()).collect()
}

/// A case for each face: a line for each spelling, as `-L:Every GPU`.
fn options(faces: &[Face]) -> String {
    let case = |name: &str, lines: Vec<String>| {
        format!("        {name}) printf '%s\\n' \\\n            {} ;;", lines.join(" \\\n            "))
    };
    let lines = |option: &Word, spellings: &[&str]| {
        spellings.iter().map(|spelling| quoted(&format!("{spelling}:{}", option.about))).collect::<Vec<_>>()
    };
    let habit = faces[0].options.iter().flat_map(|option| lines(option, &option.habit)).collect();
    let commands = faces[1..].iter().map(|face| quoted(&format!("{}:{}", face.name, face.about))).collect();
    let of_each = faces
        .iter()
        .map(|face| case(face.name, face.options.iter().flat_map(|option| lines(option, &option.spellings)).collect()));
    of_each.chain([case("habit", habit), case("commands", commands)]).collect::<Vec<_>>().join("\n")
}

/// A case for each option that a value follows.
fn values(faces: &[Face]) -> String {
    let mut cases = Vec::new();
    for face in faces {
        for option in face.options.iter().filter(|option| option.takes == Takes::Value) {
            let keys: Vec<String> =
                option.spellings.iter().map(|spelling| format!("'{} {spelling}'", face.name)).collect();
            let text = match &option.values {
                Proposed::Any => "?".to_owned(),
                Proposed::File => "/".to_owned(),
                Proposed::One(words) => format!("1 {}", words.join(" ")),
                Proposed::Commas(words) => format!(", {}", words.join(" ")),
                Proposed::Letters(letters) => format!("+ {}", letters.join(" ")),
            };
            cases.push(format!("        {}) echo {} ;;", keys.join("|"), quoted(&text)));
        }
    }
    cases.join("\n")
}

/// As a word of any shell: fish takes a quote out of single quotes as the others do.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn fish(faces: &[Face], own: &[String]) -> String {
    let mut lines = vec!["complete -c gpumon -n 'not __fish_gpumon_smi_is own open start' -f".to_owned()];
    for face in &faces[1..] {
        let about = quoted(&face.about);
        lines.push(format!(
            "complete -c gpumon -n '__fish_gpumon_smi_is start smi-start' -f -a {} -d {about}",
            face.name
        ));
    }
    for face in faces {
        for option in &face.options {
            let condition = if face.name == "smi" { "smi smi-start" } else { face.name };
            lines.push(fish_line(condition, option, &option.spellings));
            if !option.habit.is_empty() {
                lines.push(fish_line("start open", option, &option.habit));
            }
        }
    }
    include_str!("smi.fish")
        .replace("@COMMANDS@", &commands(faces).join(" "))
        .replace("@OWN@", &own.iter().filter(|name| *name != "smi").cloned().collect::<Vec<_>>().join(" "))
        .replace("@HABIT@", &habit(faces).join(" "))
        .replace("@LINES@", &lines.join("\n"))
}

fn fish_line(condition: &str, option: &Word, spellings: &[&str]) -> String {
    let flags: Vec<String> = spellings
        .iter()
        // Options with one dash are words, also those of a letter, which cannot be put together.
        .map(|spelling| match spelling.strip_prefix("--") {
            Some(long) => format!("-l {long}"),
            None => format!("-o {}", spelling.trim_start_matches('-')),
        })
        .collect();
    let values = match &option.values {
        _ if option.takes == Takes::Nothing => String::new(),
        Proposed::Any if option.takes == Takes::PerhapsValue => String::new(),
        Proposed::Any => " -x".to_owned(),
        Proposed::File => " -r -F".to_owned(),
        Proposed::One(words) => format!(" -x -a '{}'", words.join(" ")),
        Proposed::Commas(words) => format!(" -x -a '(__fish_gpumon_smi_list {})'", words.join(" ")),
        Proposed::Letters(letters) => format!(" -x -a '(__fish_gpumon_smi_letters {})'", letters.join(" ")),
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
        assert!(all.starts_with("#compdef gpumon\n\n_gpumon_own() {\n    own\n}\n"), "{all}");
        assert_eq!(all.matches("\n_gpumon() {").count(), 1);
        assert_eq!(all.matches("$funcstack[1]").count(), 1);
    }

    #[test]
    fn nothing_is_left_to_be_filled_in() {
        let own = ["collect".to_owned(), "smi".to_owned()];
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let all = add(shell, "", &own);
            let is_gap = |word: &str| word.starts_with('@') && word.ends_with('@') && word.len() > 2;
            assert!(!all.split_whitespace().any(is_gap), "{shell}");
            assert!(all.contains("--query-gpu") && all.contains("clocks.current.graphics"), "{shell}");
        }
    }

    #[test]
    fn a_quote_stays_one() {
        assert_eq!(quoted("NVIDIA's"), r"'NVIDIA'\''s'");
    }
}
