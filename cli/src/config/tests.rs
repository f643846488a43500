//! Tests for parsing, merging, resolving and writing settings files.

use std::{ffi::OsString, fs, io, path::Path};

use clap::CommandFactory as _;
use gpumon_probe::toml_error::TomlError;

use super::{file::set_table_values, merge_entries, *};
use crate::args::Args;

fn make_file(path: &str, text: &str) -> SettingsFile {
    SettingsFile {
        path: path.into(),
        text: text.to_owned(),
    }
}

fn parse_text(text: &str) -> ParsedFile {
    parse(&make_file("/etc/gpumon/config.toml", text), &Keys::new())
}

#[track_caller]
fn find_mistake(text: &str) -> String {
    match parse_text(text).mistakes.as_slice() {
        [Mistake { error, .. }] => error
            .to_string()
            .trim_start_matches("/etc/gpumon/config.toml:")
            .to_owned(),
        other => panic!("{text}: {other:?}"),
    }
}

/// Merges the files and returns each setting as `table.key = value`. Values are formatted as on the
/// command line.
fn merge_files(files: &[&str]) -> Vec<String> {
    let keys = Keys::new();
    let parsed = files
        .iter()
        .map(|text| parse(&make_file("/etc/gpumon/config.toml", text), &keys).entries);
    let shown =
        |entry: &file::Entry| format!("{} = {}", entry.key.full_name(), entry.texts.join("|"));
    merge_entries(parsed).iter().map(shown).collect()
}

#[test]
fn toml_values_become_command_line_arguments() {
    let text = "source = \"sim:2\"\n[serve]\ninterval-ms = 0x1F4\nallow-runs = true\ndata-size = \
                \"2GiB\"\npublic-origin = [\"https://a.example\", \"https://b.example\"]\nalerts = \
                \"alerts.toml\"\ndata-dir = \"none\"\n[top]\nmemory-thresholds = [5, 50]\ncolumns \
                = [\"pid\", \"what\"]\n";
    for text in [
        text.to_owned(),
        text.replace('\n', "\r\n"),
        format!("\u{feff}{text}"),
    ] {
        assert!(
            parse_text(&text).mistakes.is_empty(),
            "{:?}",
            parse_text(&text).mistakes
        );
        let all = merge_files(&[&text]);
        for line in [
            "source = sim:2",
            "serve.interval-ms = 500",
            "serve.allow-runs = true",
            "serve.data-size = 2GiB",
            "serve.public-origin = https://a.example|https://b.example",
            "serve.alerts = /etc/gpumon/alerts.toml",
            "serve.data-dir = none",
            "top.memory-thresholds = 5,50",
            "top.columns = pid|what",
        ] {
            assert!(all.iter().any(|set| set == line), "{line}: {all:?}");
        }
        let lines: Vec<usize> = parse_text(&text)
            .entries
            .iter()
            .map(|entry| entry.line)
            .collect();
        assert_eq!(
            (lines.iter().min(), lines.iter().max()),
            (Some(&1), Some(&11)),
            "{lines:?}"
        );
    }
}

#[test]
fn settings_of_version_0_2_0_are_read() {
    let mut heading = "";
    let mut count = 0;
    for line in include_str!("version-0.2.0.toml").lines() {
        if line.starts_with('[') {
            heading = line;
        } else if line.contains(" = ") {
            // Each key is parsed alone, because some keys conflict.
            let parsed = parse_text(&format!("{heading}\n{line}\n"));
            assert!(parsed.mistakes.is_empty(), "{:?}", parsed.mistakes);
            assert_eq!(parsed.entries.len(), 1, "{heading} {line}");
            count += 1;
        }
    }
    assert_eq!(count, 81);
}

#[test]
fn unknown_key_error_suggests_a_fix() {
    assert_eq!(
        find_mistake("sorce = \"sim\""),
        "1:1: unknown key `sorce`: did you mean `source`?"
    );
    assert_eq!(
        find_mistake("\n[serve]\nlisen = 1"),
        "3:1: unknown key `lisen` in [serve]: did you mean `listen`?"
    );
    assert_eq!(
        find_mistake("[serv]\nlisten = 1"),
        "1:2: unknown key `serv`: did you mean `serve`?"
    );
    assert_eq!(
        find_mistake("data-dir = \"none\""),
        "1:1: unknown key `data-dir`: it belongs below [serve]"
    );
    assert_eq!(
        find_mistake("[serve]\ncontrol = \"/s\""),
        "2:1: unknown key `control` in [serve]: it belongs before the first table"
    );
    assert!(
        find_mistake("[top]\nfrobnicate = 1").contains("`gpumon config example` lists all keys")
    );
    // Some options are not settings keys: the option that names the settings file, options that
    // apply only to a single call, and hidden options.
    for text in [
        "config = \"x\"",
        "json = true",
        "[serve]\nworker = \"/bin/true\"",
        "[top]\nonce = true",
    ] {
        assert!(find_mistake(text).contains("unknown key"), "{text}");
    }
}

#[test]
fn wrong_value_error_describes_valid_values() {
    for (text, wanted) in [
        ("source = \"simm\"", "1:10: `source` cannot be \"simm\": "),
        (
            "[serve]\nlisten = 9123",
            "2:10: `serve.listen` cannot be 9123: use a string, such as \"127.0.0.1:9123\"",
        ),
        (
            "[serve]\nlisten = \"9123\"",
            "cannot be \"9123\": expected ADDRESS:PORT",
        ),
        (
            "[serve]\ninterval-ms = \"500\"",
            "use a number, such as 1000",
        ),
        ("[serve]\ninterval-ms = 5", "5 is not in 100..=60000"),
        ("[serve]\nallow-runs = 1", "use true or false"),
        ("[serve]\ndata-size = 5", "use a string, such as \"1GB\""),
        (
            "[serve]\ndata-size = \"5\"",
            "expected a size of 10MB or more, such as 500MB",
        ),
        (
            "[serve]\npublic-origin = \"https://a.example\"",
            "use a list, such as [\"URL\"]",
        ),
        ("[serve]\ndata-dir = \"~/gpumon\"", "use the full path"),
        ("[serve]\ninterval-ms = 1979-05-27", "use a number"),
        (
            "serve = 1",
            "write the line [serve], followed by the keys of the table",
        ),
        ("[top]\ntheme = \"lihgt\"", "did you mean `light`?"),
        (
            "[top]\ncolumns = [\"pid\", \"memroy\"]",
            "unknown value `memroy`; did you mean `memory`?",
        ),
        (
            "[top]\ncolumns = [7]",
            "use a list with one or more of gpu, pid",
        ),
        ("[top]\nrange-s = 61", "use one of 1, 10, 60, 120,"),
        ("[top]\npower-thresholds = [75, 10]", "use two percentages"),
        (
            "[top]\npower-thresholds = 7",
            "use a list, such as [50, 90]",
        ),
        ("source = \n", "1:"),
        ("source = \"a\"\nsource = \"b\"", "2:1: duplicate key"),
    ] {
        let message = find_mistake(text);
        assert!(
            message.contains(wanted) && message.lines().count() == 1,
            "{text}: {message}"
        );
    }
    let evil = find_mistake("[top]\ntheme = \"\\u001b]0;pwn\\u0007\"");
    assert!(
        evil.contains("pwn") && !evil.contains(char::is_control),
        "{evil:?}"
    );
}

#[test]
fn conflicting_keys_in_one_file_are_refused() {
    let together = "[serve]\nsocket = \"/s\"\nlisten = \"127.0.0.1:1\"\n";
    assert_eq!(
        find_mistake(together),
        "3:1: `serve.listen` cannot be used with `serve.socket` on line 2: remove one of them"
    );
    assert!(
        find_mistake("[serve]\nno-control = true\nsocket = \"/s\"\n")
            .contains("cannot be used with")
    );
    assert!(
        parse_text("[serve]\nno-control = false\nsocket = \"/s\"\n")
            .mistakes
            .is_empty()
    );
}

#[test]
fn later_file_overrides_and_removes_conflicting_keys() {
    let system = "source = \"sim:1\"\n[serve]\nlisten = \"127.0.0.1:1\"\ninterval-ms = \
                  500\nallow-runs = true\n";
    let user = "[serve]\nsocket = \"/s\"\nallow-runs = false\n";
    assert_eq!(
        merge_files(&[system, user]),
        [
            "source = sim:1",
            "serve.interval-ms = 500",
            "serve.socket = /s",
            "serve.allow-runs = false"
        ]
    );
    let turned = [
        "source = sim:1",
        "serve.listen = 127.0.0.1:1",
        "serve.interval-ms = 500",
        "serve.allow-runs = true",
    ];
    assert_eq!(merge_files(&[user, system]), turned);
}

#[test]
fn every_server_option_has_settings_key_and_variable() {
    let gpumon = Args::command();
    let keys = Keys::new();
    let serve = gpumon.find_subcommand("serve").unwrap();
    for arg in serve.get_arguments().filter(|arg| !arg.is_hide_set()) {
        let name = arg.get_long().unwrap();
        assert!(
            keys.iter().any(|key| key.matches_argument(arg)),
            "give --{name} of `serve` an `env`"
        );
    }
    for key in keys.iter() {
        let own = key
            .table
            .filter(|table| *table != "serve")
            .map(|table| format!("{table}-"))
            .unwrap_or_default();
        let variable = format!("GPUMON_{own}{}", key.name())
            .to_uppercase()
            .replace('-', "_");
        assert_eq!(key.variable_name(), variable, "--{}", key.name());
        assert!(
            !key.help().is_empty() && !key.describe_valid_values().is_empty(),
            "--{}",
            key.name()
        );
    }
    // In the table `serve`, the options of `gpumon fleet` have the prefix `fleet-`.
    let is_of_fleet = |key: &&Key| key.table == Some("serve") && key.name().starts_with("fleet-");
    for key in keys.iter().filter(is_of_fleet) {
        let own = keys.get(Some("fleet"), key.name().trim_start_matches("fleet-"));
        assert_eq!(
            own.map(Key::variable_name),
            Some(key.variable_name()),
            "{}",
            key.name()
        );
    }
    let mut names: Vec<_> = keys
        .iter()
        .filter(|key| !is_of_fleet(key))
        .map(Key::variable_name)
        .collect();
    let many = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), many, "no two keys share a variable");
}

/// Resolves a command line with the settings file `text`, so that this machine's settings files
/// have no effect.
fn resolve_with_file(text: &str, words: &[&str]) -> Result<ResolvedArguments, Refusal> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    let config = ["gpumon", "--config", file.path().to_str().unwrap()];
    let words: Vec<OsString> = config.iter().chain(words).map(OsString::from).collect();
    resolve_command_line(&Args::command(), &words)
}

fn list_raw_values(resolved: &ResolvedArguments, option: &str) -> Vec<String> {
    let leaf = command_line::find_leaf_matches(&resolved.matches);
    let values = leaf.try_get_raw(option).unwrap().into_iter().flatten();
    values
        .map(|value| value.to_string_lossy().into_owned())
        .collect()
}

#[test]
fn settings_file_sets_options_missing_on_command_line() {
    let text = "source = \"sim:2\"\n[serve]\nlisten = \"127.0.0.1:1\"\nallow-runs = \
                true\ninterval-ms = 500\npublic-origin = [\"https://a.example\"]\n[top]\nmouse = \
                false\n";
    let serve = resolve_with_file(text, &["serve", "--interval-ms", "700"]).unwrap();
    assert_eq!(list_raw_values(&serve, "interval_ms"), ["700"]);
    assert_eq!(list_raw_values(&serve, "listen"), ["127.0.0.1:1"]);
    assert_eq!(
        (
            list_raw_values(&serve, "allow_runs"),
            list_raw_values(&serve, "source")
        ),
        (vec!["true".to_owned()], vec!["sim:2".to_owned()])
    );
    assert!(serve.is_typed("interval_ms") && !serve.is_typed("listen"));
    // Flags can switch off an option of a settings file, replace its value, or remove a conflicting
    // option.
    let serve = resolve_with_file(
        text,
        &[
            "--source",
            "sim:1",
            "serve",
            "--allow-runs=false",
            "--socket",
            "/s",
            "--public-origin=https://b.example",
        ],
    );
    let serve = serve.unwrap();
    assert_eq!(
        (
            list_raw_values(&serve, "allow_runs"),
            list_raw_values(&serve, "source")
        ),
        (vec!["false".to_owned()], vec!["sim:1".to_owned()])
    );
    assert_eq!(
        (
            list_raw_values(&serve, "listen"),
            list_raw_values(&serve, "socket")
        ),
        (vec!["127.0.0.1:9123".to_owned()], vec!["/s".to_owned()])
    );
    assert_eq!(
        list_raw_values(&serve, "public_origin"),
        ["https://b.example"]
    );
    // Each command uses only the settings for its own options.
    let top = resolve_with_file(text, &["top"]).unwrap();
    assert_eq!(
        (
            list_raw_values(&top, "mouse"),
            list_raw_values(&top, "interval_ms")
        ),
        (vec!["false".to_owned()], vec!["1000".to_owned()])
    );
    let collect = resolve_with_file(text, &["collect"]).unwrap();
    assert_eq!(
        list_raw_values(&collect, "interval_ms"),
        ["500"],
        "an option with the same variable"
    );
    let wait =
        resolve_with_file(text, &["wait", "--free", "1GiB", "--", "serve", "--listen"]).unwrap();
    assert_eq!(list_raw_values(&wait, "source"), ["sim:2"]);
}

#[test]
fn command_fails_only_on_mistakes_in_its_settings() {
    let refused = |text: &str, words: &[&str]| match resolve_with_file(text, words) {
        Err(Refusal::Settings(mistakes)) => mistakes.len(),
        Err(Refusal::Arguments(error)) => panic!("{error}"),
        Ok(_) => 0,
    };
    for words in [&["serve"][..], &["top"], &["info"], &[]] {
        assert_eq!(refused("sorce = 1\nnvml = 2", words), 2, "{words:?}");
        assert_eq!(refused("= 1", words), 1, "{words:?}");
    }
    let text = "[serve]\nlisen = 1\n";
    assert_eq!(
        [
            refused(text, &["serve"]),
            refused(text, &["collect"]),
            refused(text, &["top"])
        ],
        [1, 1, 0]
    );
    // A screen starts despite a mistake in its settings, and reports the mistake.
    let text = "[top]\nthme = 1\ntheme = \"light\"\n";
    assert_eq!(refused(text, &["serve"]), 0);
    let top = resolve_with_file(text, &["top"]).unwrap();
    assert_eq!(
        (list_raw_values(&top, "theme"), top.remarks.len()),
        (vec!["light".to_owned()], 1)
    );
    for command in [&["doctor"][..], &["man"], &["config", "check"]] {
        assert_eq!(refused("= 1", command), 0, "{command:?}");
    }
}

#[test]
fn unreadable_file_error_names_file_and_fix() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    let why = || {
        let (files, unreadable) = read_applicable_files(Some(&path));
        assert!(files.is_empty());
        unreadable[0].to_string()
    };
    assert!(why().ends_with("check the path"), "{}", why());
    fs::write(&path, [0xff, 0xfe, b'a']).unwrap();
    assert!(why().ends_with("save the file as UTF-8"), "{}", why());
    fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
    assert!(
        why().contains("larger than the limit of 1048576 bytes"),
        "{}",
        why()
    );
    // A file of exactly the maximum size can be read, both directly and through a symbolic link.
    fs::write(&path, vec![b'#'; 1 << 20]).unwrap();
    let link = folder.path().join("link.toml");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert_eq!(read_applicable_files(Some(&link)).0.len(), 1);
    assert!(
        read_applicable_files(Some(Path::new("/dev/zero"))).1[0]
            .to_string()
            .contains("not a regular file"),
        "no end"
    );
    assert!(has_no_files(Some(Path::new("none"))));
    // If the home directory is not a directory, such as /dev/null, the user's settings file counts
    // as missing.
    assert!(super::counts_as_missing(
        Path::new("/dev/null/gpumon/config.toml"),
        io::ErrorKind::NotADirectory
    ));
    assert!(super::counts_as_missing(
        &path.with_file_name("none.toml"),
        io::ErrorKind::NotFound
    ));
    assert!(
        !super::counts_as_missing(&path, io::ErrorKind::PermissionDenied),
        "it is there, and not for this user"
    );
}

fn to_owned_values(all: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    all.iter()
        .map(|(key, value)| (*key, (*value).to_owned()))
        .collect()
}

#[test]
fn writing_keeps_comments_order_and_unknown_keys() {
    let new = to_owned_values(&[("theme", "\"light\""), ("sort", "\"sm\"")]);
    let written = |text: &str| set_table_values(text, "top", &new).unwrap();
    let text = "# mine\nsource = \"sim\"\n\n[top] # screen\nsort = \"pid\"   # by number\nfuture \
                = 1\n\n# night\n[serve]\ntheme = 2\n";
    let expected = "# mine\nsource = \"sim\"\n\n[top] # screen\nsort = \"sm\"   # by \
                    number\nfuture = 1\ntheme = \"light\"\n\n# night\n[serve]\ntheme = 2\n";
    assert_eq!(written(text), expected);
    assert_eq!(written(expected), expected, "a second time changes nothing");
    assert_eq!(written(""), "[top]\ntheme = \"light\"\nsort = \"sm\"\n");
    assert_eq!(
        written("a = 1"),
        "a = 1\n\n[top]\ntheme = \"light\"\nsort = \"sm\"\n"
    );
    assert_eq!(
        written("[top]"),
        "[top]\ntheme = \"light\"\nsort = \"sm\"\n"
    );
    assert_eq!(
        written("[top]\nx = [\n  1,\n]"),
        "[top]\nx = [\n  1,\n]\ntheme = \"light\"\nsort = \"sm\"\n"
    );
    assert_eq!(
        written("[top]\r\nsort = 1\r\n"),
        "[top]\r\nsort = \"sm\"\r\ntheme = \"light\"\r\n"
    );
    assert_eq!(
        written("[top]\n[top.more]\nsort = 1\n"),
        "[top]\ntheme = \"light\"\nsort = \"sm\"\n[top.more]\nsort = 1\n"
    );
    for text in [
        "top.sort = 1\n",
        "top = { sort = 1 }\n",
        "top = 1\n",
        "top = \n",
    ] {
        assert!(set_table_values(text, "top", &new).is_err(), "{text}");
    }
}

#[test]
fn writing_keeps_symlink_and_permissions() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (
        folder.path().join("kept/config.toml"),
        folder.path().join("link.toml"),
    );
    let new = to_owned_values(&[("tree", "true")]);
    write_table(&path, "top", &new).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&path, &link).unwrap();
    write_table(&link, "top", &to_owned_values(&[("tree", "false")])).unwrap();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&path).unwrap(), "[top]\ntree = false\n");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    // A file that has become invalid since it was read is not overwritten.
    fs::write(&path, "tree = \n").unwrap();
    assert!(write_table(&path, "top", &new).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "tree = \n");
}

#[test]
fn settings_mistake_has_line_and_column() {
    let Mistake {
        error: TomlError { line, column, .. },
        ..
    } = parse_text("[serve]\n  lisen = 1").mistakes.remove(0);
    assert_eq!((line, column), (2, 3));
}
