//! The names are an interface: other programs ask for them, and read them from the help.

use super::super::{QueryKind, help, parse};

/// The lines of nvidia-smi 580's help that programs read, of all queries in the order of [`QueryKind::ALL`].
const NAMES: &str = include_str!("names.txt");

/// What stands in quotation marks at the beginning of other lines: the values of a field, below its name.
const VALUES: [&str; 4] = ["0: Default", "1: Exclusive_Thread", "2: Prohibited", "3: Exclusive_Process"];

/// The lines that begin with a quotation mark, and whether they follow an empty line, as names do.
fn quoted(help: &str) -> impl Iterator<Item = (&str, bool)> {
    let lines = help.lines().zip(help.lines().skip(1));
    lines.filter(|(_, line)| line.starts_with('"')).map(|(above, line)| (line, above.is_empty()))
}

#[test]
fn values_are_quoted_as_those_of_nvidia_smi_and_are_no_names() {
    let helps: Vec<String> = QueryKind::ALL.into_iter().map(help).collect();
    let values = helps.iter().flat_map(|help| quoted(help)).filter(|(_, is_name)| !is_name);
    assert_eq!(values.filter_map(|(line, _)| line.split('"').nth(1)).collect::<Vec<_>>(), VALUES);
}

#[test]
fn the_help_has_the_names_of_nvidia_smi_in_its_order() {
    let is_name = |line: &&str| {
        line.starts_with('"') && !VALUES.iter().any(|value| line[1..].starts_with(value))
            || line.starts_with("List of ") && line.ends_with("\":")
            || line.starts_with("Section about ")
    };
    let helps: Vec<String> = QueryKind::ALL.into_iter().map(help).collect();
    let lines: Vec<&str> = helps.iter().flat_map(|help| help.lines()).filter(is_name).collect();
    assert_eq!(lines, NAMES.lines().collect::<Vec<_>>());
}

#[test]
fn every_name_and_alias_can_be_asked_for_and_gives_the_first_name() {
    let mut known = 0;
    for help in NAMES.split("List of valid properties").skip(1) {
        let query =
            QueryKind::ALL.into_iter().find(|query| help.contains(&format!("\"{}\":", query.switch()))).unwrap();
        for line in help.lines().filter(|line| line.starts_with('"')) {
            let names: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
            for name in &names {
                let header = parse(query, name, None).unwrap_or_else(|refusal| panic!("{refusal}")).header().unwrap();
                assert_eq!(header.split([' ', '\n']).next(), Some(names[0]), "{name}");
                known += 1;
            }
        }
    }
    assert_eq!(known, 314);
}

#[test]
fn each_entry_of_the_help_has_a_sentence_and_ends_with_an_empty_line() {
    for query in QueryKind::ALL {
        let help = help(query);
        for entry in help.split("\n\n").filter(|entry| entry.starts_with('"')) {
            assert!(entry.lines().count() > 1 && entry.ends_with('.'), "{entry}");
        }
        assert!(help.ends_with("\n\n") && !help.ends_with("\n\n\n"), "{}", query.switch());
        assert!(help.lines().all(|line| line == line.trim_end()), "{}", query.switch());
    }
}

#[test]
fn empty_names_are_passed_over_and_others_may_come_twice() {
    let header = |fields| parse(QueryKind::Gpu, fields, None).unwrap().header().unwrap();
    assert_eq!(header("name,"), "name\n");
    assert_eq!(header(",name,,uuid"), "name, uuid\n");
    assert_eq!(header("name,gpu_name"), "name, name\n");
    assert_eq!(header(""), "\n");
    assert_eq!(header("memory.used,clocks.gr"), "memory.used [MiB], clocks.current.graphics [MHz]\n");
}

#[test]
fn the_first_unknown_name_is_refused() {
    for (query, fields, name) in [
        (QueryKind::Gpu, "name,bogus,worse", "bogus"),
        (QueryKind::Gpu, "name, uuid", " uuid"),
        (QueryKind::Gpu, "name uuid", "name uuid"),
        (QueryKind::Gpu, "NAME", "NAME"),
        (QueryKind::ComputeApps, "index", "index"),
        (QueryKind::RemappedRows, "retired_pages.pending", "retired_pages.pending"),
    ] {
        let refusal = parse(query, fields, None).map(|_| ()).unwrap_err();
        assert_eq!(refusal.text, format!("Field \"{name}\" is not a valid field to query.\n\n"));
        assert_eq!(refusal.code, 2);
    }
}
