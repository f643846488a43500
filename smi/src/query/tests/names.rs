//! Tests of field names, which are an interface: other programs query them and read them from the
//! help.

use super::super::{QueryKind, fields, help, parse};
use crate::release::Release;

/// The lines with names from the help of each nvidia-smi release, for the queries in the order of
/// [`QueryKind::ALL`]. Some queries were not recorded for every release.
const NAMES: [(Release, &str); 4] = [
    (Release(580, 159), include_str!("names/580.txt")),
    (Release(590, 48), include_str!("names/590.txt")),
    (Release(595, 80), include_str!("names/595.txt")),
    (Release(610, 57), include_str!("names/610.txt")),
];

/// Quoted words at the beginning of other lines in the help. They are values of the field above
/// them.
const VALUES: [&str; 4] = [
    "0: Default",
    "1: Exclusive_Thread",
    "2: Prohibited",
    "3: Exclusive_Process",
];

/// Returns each recorded help of a query, with its release.
fn recorded() -> impl Iterator<Item = (Release, QueryKind, Vec<&'static str>)> {
    NAMES.into_iter().flat_map(|(release, names)| {
        names.split("List of ").skip(1).map(move |help| {
            let query = QueryKind::ALL
                .into_iter()
                .find(|query| help.contains(&format!("\"{}\":", query.switch())));
            (release, query.unwrap(), help.lines().skip(1).collect())
        })
    })
}

/// Returns the lines that begin with a quotation mark, and whether they follow an empty line, as
/// the names of fields do.
fn quoted(help: &str) -> impl Iterator<Item = (&str, bool)> {
    let lines = help.lines().zip(help.lines().skip(1));
    lines
        .filter(|(_, line)| line.starts_with('"'))
        .map(|(above, line)| (line, above.is_empty()))
}

#[test]
fn values_are_quoted_as_those_of_nvidia_smi_and_are_no_names() {
    let helps: Vec<String> = QueryKind::ALL
        .map(|query| help(query, Release::NEWEST_KNOWN))
        .into();
    let values = helps
        .iter()
        .flat_map(|help| quoted(help))
        .filter(|(_, is_name)| !is_name);
    assert_eq!(
        values
            .filter_map(|(line, _)| line.split('"').nth(1))
            .collect::<Vec<_>>(),
        VALUES
    );
}

#[test]
fn the_help_has_the_names_of_each_nvidia_smi_in_its_order() {
    let is_name = |line: &&str| {
        line.starts_with('"') && !VALUES.iter().any(|value| line[1..].starts_with(value))
            || line.starts_with("Section about ")
    };
    for (release, query, names) in recorded() {
        let help = help(query, release);
        let list = format!(
            "List of valid properties to query for the switch \"{}\":\n\n",
            query.switch()
        );
        assert!(help.starts_with(&list), "{release:?}");
        assert_eq!(
            help.lines().filter(is_name).collect::<Vec<_>>(),
            names,
            "{release:?}"
        );
    }
}

#[test]
fn every_name_and_alias_of_a_release_can_be_asked_for_there_and_no_other() {
    let mut known = [0; NAMES.len()];
    for (release, query, lines) in recorded() {
        let place = NAMES.iter().position(|(own, _)| *own == release).unwrap();
        let lines = lines.into_iter().filter(|line| line.starts_with('"'));
        let of_release: Vec<Vec<&str>> = lines
            .map(|line| line.split('"').skip(1).step_by(2).collect())
            .collect();
        for names in &of_release {
            for name in names {
                let request =
                    parse(query, name, None).unwrap_or_else(|refusal| panic!("{refusal}"));
                assert_eq!(request.check(release), Ok(()), "{name}");
                let header = request.header().unwrap();
                assert_eq!(header.split([' ', '\n']).next(), Some(names[0]), "{name}");
                known[place] += 1;
            }
        }
        for name in fields(query).into_iter().flat_map(|field| field.names) {
            if !of_release.iter().flatten().any(|own| *own == name) {
                let refusal = parse(query, name, None)
                    .unwrap()
                    .check(release)
                    .unwrap_err();
                assert_eq!(refusal, not_valid(name), "{release:?}");
            }
        }
    }
    assert_eq!(known, [314, 285, 275, 314]);
}

fn not_valid(name: &str) -> crate::Refusal {
    crate::Refusal::new(
        2,
        format!("Field \"{name}\" is not a valid field to query.\n\n"),
    )
}

#[test]
fn a_driver_between_the_known_ones_has_the_fields_of_the_older_one() {
    let names = |release| help(QueryKind::Gpu, release);
    assert_eq!(names(Release(575, 51)), names(Release(580, 159)));
    assert_eq!(names(Release(600, 1)), names(Release(595, 80)));
    assert_eq!(names(Release(615, 71)), names(Release(610, 57)));
}

#[test]
fn each_entry_of_the_help_has_a_sentence_and_ends_with_an_empty_line() {
    for query in QueryKind::ALL {
        let help = help(query, Release::NEWEST_KNOWN);
        for entry in help.split("\n\n").filter(|entry| entry.starts_with('"')) {
            assert!(entry.lines().count() > 1 && entry.ends_with('.'), "{entry}");
        }
        assert!(
            help.ends_with("\n\n") && !help.ends_with("\n\n\n"),
            "{}",
            query.switch()
        );
        assert!(
            help.lines().all(|line| line == line.trim_end()),
            "{}",
            query.switch()
        );
    }
}

#[test]
fn empty_names_are_passed_over_and_others_may_come_twice() {
    let header = |fields| {
        parse(QueryKind::Gpu, fields, None)
            .unwrap()
            .header()
            .unwrap()
    };
    assert_eq!(header("name,"), "name\n");
    assert_eq!(header(",name,,uuid"), "name, uuid\n");
    assert_eq!(header("name,gpu_name"), "name, name\n");
    assert_eq!(header(""), "\n");
    assert_eq!(
        header("memory.used,clocks.gr"),
        "memory.used [MiB], clocks.current.graphics [MHz]\n"
    );
}

#[test]
fn the_first_unknown_name_is_refused() {
    for (query, fields, name) in [
        (QueryKind::Gpu, "name,bogus,worse", "bogus"),
        (QueryKind::Gpu, "name, uuid", " uuid"),
        (QueryKind::Gpu, "name uuid", "name uuid"),
        (QueryKind::Gpu, "NAME", "NAME"),
        (QueryKind::ComputeApps, "index", "index"),
        (
            QueryKind::RemappedRows,
            "retired_pages.pending",
            "retired_pages.pending",
        ),
    ] {
        let refusal = parse(query, fields, None).map(|_| ()).unwrap_err();
        assert_eq!(refusal, not_valid(name));
    }
}
