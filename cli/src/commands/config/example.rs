//! `gpumon config example`: a settings file with every key.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use crate::{
    config::{Keys, TABLES},
    exit::Failure,
};

const HEAD: &str = "\
# Settings of gpumon: /etc/gpumon/config.toml for every user, ~/.config/gpumon/config.toml for one.
#
# Each line that is commented out shows the default, or the kind of value where there is none. Environment variables and
# options go before what stands here. Check with
#
#     gpumon config check
#     gpumon config show
";

const WIDTH: usize = 118;

pub(super) fn run() -> Result<(), Failure> {
    io::stdout().write_all(text().as_bytes())?;
    Ok(())
}

pub(crate) fn text() -> String {
    let keys = Keys::new();
    let mut text = HEAD.to_owned();
    for table in [None].into_iter().chain(TABLES.map(Some)) {
        if let Some(table) = table {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n[{table}]\n");
        }
        for key in keys.of(table) {
            text.push('\n');
            wrapped(
                &mut text,
                &format!("{} (--{}, {})", key.help(), key.name(), key.variable()),
            );
            let _ = writeln!(text, "#{} = {}", key.name(), key.example());
        }
    }
    text
}

fn wrapped(text: &mut String, paragraph: &str) {
    let mut line = String::from("#");
    for word in paragraph.split_whitespace() {
        if line.chars().count() + word.chars().count() >= WIDTH {
            text.extend([line.as_str(), "\n"]);
            "#".clone_into(&mut line);
        }
        line.extend([" ", word]);
    }
    text.extend([line.as_str(), "\n"]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Parsed, SettingsFile, parse};

    fn read(text: String) -> Parsed {
        parse(
            &SettingsFile {
                path: "/etc/gpumon/config.toml".into(),
                text,
            },
            &Keys::new(),
        )
    }

    #[test]
    fn the_example_is_right_and_so_is_each_default_in_it() {
        let example = text();
        let parsed = read(example.clone());
        assert!(
            parsed.mistakes.is_empty() && parsed.entries.is_empty(),
            "{:?}",
            parsed.mistakes
        );
        let keys = Keys::new();
        for key in keys
            .iter()
            .filter(|key| !key.arg.get_default_values().is_empty())
        {
            let heading = key
                .table
                .map(|table| format!("[{table}]\n"))
                .unwrap_or_default();
            let parsed = read(format!("{heading}{} = {}\n", key.name(), key.example()));
            assert!(parsed.mistakes.is_empty(), "{:?}", parsed.mistakes);
            assert!(example.contains(&format!("\n#{} = {}\n", key.name(), key.example())));
        }
    }
}
