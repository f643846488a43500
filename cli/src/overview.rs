//! The overview that `gpumon --help` prints: all commands in groups on one screen.

use clap::builder::StyledStr;

use crate::terminal::{
    line::{DIM, STRONG, paint},
    text::align_left,
};

/// A group of related commands, each with a short description.
struct Group {
    title: &'static str,
    commands: &'static [(&'static str, &'static str)],
}

/// The groups, arranged in rows and columns.
const GROUPS: [[Group; 2]; 3] = [
    [
        Group {
            title: "Monitor",
            commands: &[
                ("top", "live charts, processes"),
                ("wait", "until a GPU is free"),
                ("run", "measure a command"),
                ("smi", "same as nvidia-smi"),
            ],
        },
        Group {
            title: "Serve and record",
            commands: &[
                ("serve", "web page, API, metrics"),
                ("fleet", "many machines"),
                ("record", "write readings to a file"),
                ("replay", "play back a recording"),
                ("export", "history as CSV or JSON"),
                ("collect", "readings as JSON lines"),
                ("mcp", "tools for AI assistants"),
            ],
        },
    ],
    [
        Group {
            title: "Report",
            commands: &[
                ("usage", "energy and time by owner"),
                ("job", "how well a job used GPUs"),
                ("compare", "two recordings or spans"),
                ("notebook", "cost of each cell"),
            ],
        },
        Group {
            title: "Load GPUs",
            commands: &[
                ("bench", "verified benchmarks"),
                ("burn", "full load, error counts"),
                ("selftest", "check the readings"),
                ("oom", "run out of memory safely"),
                ("tutorials", "why fused kernels win"),
            ],
        },
    ],
    [
        Group {
            title: "Maintain",
            commands: &[
                ("doctor", "find and fix problems"),
                ("info", "properties, peak rates"),
                ("config", "settings and origins"),
                ("alerts", "rules and silences"),
                ("mark", "mark this moment"),
                ("pause", "release the GPUs"),
            ],
        },
        Group {
            title: "",
            commands: &[
                ("resume", "monitor again"),
                ("schema", "JSON Schema of output"),
                ("completions", "for bash, zsh, fish"),
                ("man", "manual pages"),
                ("licenses", "gpumon and its libraries"),
                ("help", "all options"),
            ],
        },
    ],
];

/// The width of a group, in columns. The constant below is the width of the names of commands in a
/// group.
const GROUP_WIDTH: usize = 40;
const NAME_WIDTH: usize = 13;

/// The maximum length of a description in a left group. Names are indented by two columns, and a
/// space separates the groups.
const MAX_LEFT_DESCRIPTION: usize = GROUP_WIDTH - NAME_WIDTH - 3;

pub(crate) fn format_overview() -> StyledStr {
    let mut text =
        "Usage: gpumon [OPTIONS] [COMMAND]   Without a command: every GPU and process\n".to_owned();
    for [first, second] in &GROUPS {
        text += &format_line(&format_heading(first), &format_heading(second));
        for at in 0..first.commands.len().max(second.commands.len()) {
            text += &format_line(&format_entry(first, at), &format_entry(second, at));
        }
    }
    text += "Options: gpumon help [COMMAND]       Manual pages: gpumon man [COMMAND]\n";
    text.into()
}

/// A name and a description, each with its style.
type StyledEntry = [(anstyle::Style, String); 2];

fn format_heading(group: &Group) -> StyledEntry {
    [(STRONG, group.title.to_owned()), (DIM, String::new())]
}

fn format_entry(group: &Group, at: usize) -> StyledEntry {
    let (name, words) = group.commands.get(at).copied().unwrap_or_default();
    let name = if name.is_empty() {
        String::new()
    } else {
        align_left(&format!("  {name}"), NAME_WIDTH + 2)
    };
    [(anstyle::Style::new(), name), (DIM, words.to_owned())]
}

fn format_line(first: &StyledEntry, second: &StyledEntry) -> String {
    let width: usize = first.iter().map(|(_, text)| text.len()).sum();
    assert!(
        width < GROUP_WIDTH,
        "shorten '{}': a description in a left group has at most {MAX_LEFT_DESCRIPTION} characters",
        first[1].1
    );
    let paint_piece = |piece: &StyledEntry| -> String {
        let shown = piece.iter().filter(|(_, text)| !text.is_empty());
        shown.map(|(style, text)| paint(*style, text)).collect()
    };
    let (first, second) = (paint_piece(first), paint_piece(second));
    if second.is_empty() {
        return first + "\n";
    }
    format!("{first}{:gap$}{second}\n", "", gap = GROUP_WIDTH - width)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::{args::Args, terminal::line::strip_styles};

    #[test]
    fn overview_fits_one_screen_and_has_every_command() {
        let text = strip_styles(&format_overview().ansi().to_string());
        insta::assert_snapshot!(text);
        assert!(text.lines().count() < 24, "{text}");
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        let gpumon = Args::command();
        let mut expected: Vec<&str> = gpumon
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(clap::Command::get_name)
            .collect();
        let groups = GROUPS.iter().flatten();
        let mut names: Vec<&str> = groups
            .flat_map(|group| group.commands.iter().map(|(name, _)| *name))
            .collect();
        expected.sort_unstable();
        names.sort_unstable();
        assert_eq!(names, expected);
    }
}
