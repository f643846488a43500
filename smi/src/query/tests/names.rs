//! Tests of field names. They are a public interface, because other programs query them and parse
//! them from the help.

use super::super::{QueryKind, list_fields, parse_request, render_help};
use crate::release::Release;

/// For each nvidia-smi release, the lines of the help that contain names, grouped by query in the
/// order of [`QueryKind::ALL`]. Not every query was recorded for every release.
const NAMES: [(Release, &str); 4] = [
    (Release(580, 159), include_str!("names/580.txt")),
    (Release(590, 48), include_str!("names/590.txt")),
    (Release(595, 80), include_str!("names/595.txt")),
    (Release(610, 57), include_str!("names/610.txt")),
];

/// Quoted texts at the start of help lines that are not field names, but values of the preceding
/// field.
const VALUES: [&str; 4] = [
    "0: Default",
    "1: Exclusive_Thread",
    "2: Prohibited",
    "3: Exclusive_Process",
];

/// Returns the recorded help of each query and release.
fn list_recorded_helps() -> impl Iterator<Item = (Release, QueryKind, Vec<&'static str>)> {
    NAMES.into_iter().flat_map(|(release, names)| {
        names.split("List of ").skip(1).map(move |help| {
            let query = QueryKind::ALL
                .into_iter()
                .find(|query| help.contains(&format!("\"{}\":", query.switch())));
            (release, query.unwrap(), help.lines().skip(1).collect())
        })
    })
}

/// Returns the lines that start with a quotation mark, and whether the line before each of them is
/// empty. Only lines with field names follow an empty line.
fn list_quoted_lines(help: &str) -> impl Iterator<Item = (&str, bool)> {
    let lines = help.lines().zip(help.lines().skip(1));
    lines
        .filter(|(_, line)| line.starts_with('"'))
        .map(|(above, line)| (line, above.is_empty()))
}

#[test]
fn quoted_values_in_help_match_nvidia_smi() {
    let helps: Vec<String> = QueryKind::ALL
        .map(|query| render_help(query, Release::NEWEST_KNOWN))
        .into();
    let values = helps
        .iter()
        .flat_map(|help| list_quoted_lines(help))
        .filter(|(_, is_name)| !is_name);
    assert_eq!(
        values
            .filter_map(|(line, _)| line.split('"').nth(1))
            .collect::<Vec<_>>(),
        VALUES
    );
}

#[test]
fn help_names_match_nvidia_smi() {
    let is_name = |line: &&str| {
        line.starts_with('"') && !VALUES.iter().any(|value| line[1..].starts_with(value))
            || line.starts_with("Section about ")
    };
    for (release, query, names) in list_recorded_helps() {
        let help = render_help(query, release);
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
fn each_driver_release_accepts_only_its_field_names() {
    let mut known = [0; NAMES.len()];
    for (release, query, lines) in list_recorded_helps() {
        let place = NAMES.iter().position(|(own, _)| *own == release).unwrap();
        let lines = lines.into_iter().filter(|line| line.starts_with('"'));
        let of_release: Vec<Vec<&str>> = lines
            .map(|line| line.split('"').skip(1).step_by(2).collect())
            .collect();
        for names in &of_release {
            for name in names {
                let request =
                    parse_request(query, name, None).unwrap_or_else(|refusal| panic!("{refusal}"));
                assert_eq!(request.check_release(release), Ok(()), "{name}");
                let header = request.format_header().unwrap();
                assert_eq!(header.split([' ', '\n']).next(), Some(names[0]), "{name}");
                known[place] += 1;
            }
        }
        for name in list_fields(query).into_iter().flat_map(|field| field.names) {
            if !of_release.iter().flatten().any(|own| *own == name) {
                let refusal = parse_request(query, name, None)
                    .unwrap()
                    .check_release(release)
                    .unwrap_err();
                assert_eq!(refusal, make_invalid_field_refusal(name), "{release:?}");
            }
        }
    }
    assert_eq!(known, [314, 285, 275, 314]);
}

fn make_invalid_field_refusal(name: &str) -> crate::Refusal {
    crate::Refusal::new(
        2,
        format!("Field \"{name}\" is not a valid field to query.\n\n"),
    )
}

#[test]
fn intermediate_driver_has_fields_of_older_release() {
    let names = |release| render_help(QueryKind::Gpu, release);
    assert_eq!(names(Release(575, 51)), names(Release(580, 159)));
    assert_eq!(names(Release(600, 1)), names(Release(595, 80)));
    assert_eq!(names(Release(615, 71)), names(Release(610, 57)));
}

#[test]
fn help_entries_end_with_an_empty_line() {
    for query in QueryKind::ALL {
        let help = render_help(query, Release::NEWEST_KNOWN);
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
fn field_list_ignores_empty_names_and_keeps_duplicates() {
    let header = |fields| {
        parse_request(QueryKind::Gpu, fields, None)
            .unwrap()
            .format_header()
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
fn first_unknown_name_is_refused() {
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
        let refusal = parse_request(query, fields, None).map(|_| ()).unwrap_err();
        assert_eq!(refusal, make_invalid_field_refusal(name));
    }
}
