//! Local time in every view that shows or reads it, in the time zone of `TZ`.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use gpumon_probe::model::now_ms;
use jiff::{
    Timestamp,
    tz::{Offset, TimeZone},
};
use serde_json::Value;

use crate::{
    jobs::write_history,
    support::{
        FakeNvml, Server, Tty, assert_refused_with, send_signal, stderr_text, stdout_text,
        wait_for_condition,
    },
};

const SCENARIO: &str = "gpus = 1";

/// India's offset from UTC, which is not a whole number of hours.
const INDIA_MINUTES: i32 = 330;

/// Returns a folder of time zones that has only `Asia/Kolkata`.
fn create_zoneinfo(fake: &FakeNvml) -> String {
    let header = |letters: u8| {
        [
            b"TZif2".as_slice(),
            &[0; 15],
            &[0; 19],
            &[1, 0, 0, 0, letters],
        ]
        .concat()
    };
    let old = [header(1).as_slice(), &[0; 6], b"\0"].concat();
    let seconds = (INDIA_MINUTES * 60).to_be_bytes();
    let zone = [
        &*old,
        &header(4),
        &seconds,
        &[0, 0],
        b"IST\0",
        b"\nIST-5:30\n",
    ]
    .concat();
    let folder = fake.path("zoneinfo");
    fs::create_dir_all(folder.join("Asia")).unwrap();
    fs::write(folder.join("Asia/Kolkata"), zone).unwrap();
    folder.to_str().unwrap().to_owned()
}

/// Returns a folder without time zones.
fn create_empty_zoneinfo(fake: &FakeNvml) -> String {
    let folder = fake.path("empty");
    fs::create_dir_all(&folder).unwrap();
    folder.to_str().unwrap().to_owned()
}

fn format_local(at_ms: u64, minutes_east: i32, format: &str) -> String {
    let zone = TimeZone::fixed(Offset::from_seconds(minutes_east * 60).unwrap());
    let at = Timestamp::from_millisecond(at_ms.cast_signed()).unwrap();
    at.to_zoned(zone).strftime(format).to_string()
}

/// Runs a command and checks that it prints the time of its run, in a time zone that is this many
/// minutes east of UTC. Returns its messages.
#[track_caller]
fn assert_prints_current_time(mut command: Command, format: &str, minutes_east: i32) -> String {
    let from_ms = now_ms();
    let output = command.output().unwrap();
    let to_ms = now_ms();
    let text = stdout_text(&output);
    assert!(
        output.status.success(),
        "{command:?}: {}",
        stderr_text(&output)
    );
    // A server shows its latest sample, which may have been taken before the command was run.
    let mut seconds = from_ms / 1000 - 30..=to_ms / 1000;
    let is_shown =
        seconds.any(|second| text.contains(&format_local(second * 1000, minutes_east, format)));
    assert!(
        is_shown,
        "{command:?}: {} is missing in {text}",
        format_local(to_ms, minutes_east, format)
    );
    stderr_text(&output)
}

fn set_time_zone(mut command: Command, name: &str, zoneinfo: &str) -> Command {
    command.env("TZ", name).env("TZDIR", zoneinfo);
    command
}

#[test]
fn every_format_of_tz_sets_local_time() {
    let fake = FakeNvml::new(SCENARIO);
    let (zoneinfo, none) = (create_zoneinfo(&fake), create_empty_zoneinfo(&fake));
    let path = Path::new(&zoneinfo).join("Asia/Kolkata");
    let absolute = path.to_str().unwrap();
    let time = |name: &str, zoneinfo: &str, minutes_east| {
        let command =
            fake.gpumon_command(&["smi", "--query-gpu=timestamp", "--format=csv,noheader"]);
        assert_prints_current_time(
            set_time_zone(command, name, zoneinfo),
            "%Y/%m/%d %H:%M:%S",
            minutes_east,
        )
    };
    for (name, minutes_east) in [
        ("Asia/Kolkata", INDIA_MINUTES),
        (":Asia/Kolkata", INDIA_MINUTES),
        (absolute, INDIA_MINUTES),
        (&format!(":{absolute}"), INDIA_MINUTES),
        ("IST-5:30", INDIA_MINUTES),
        ("<-0330>3:30", -210),
        ("XST0XDT-1,0/0,J365/25", 60),
        ("", 0),
        (":", 0),
        ("UTC", 0),
        ("UTC0", 0),
    ] {
        assert_eq!(time(name, &zoneinfo, minutes_east), "", "{name}");
    }
    for (name, zoneinfo) in [
        ("Mars/Olympus", &zoneinfo),
        ("Asia/Kolkata", &none),
        (&format!("{none}/x"), &zoneinfo),
        ("Asia", &zoneinfo),
    ] {
        let message = time(name, zoneinfo, 0);
        let expected = format!("gpumon: TZ={name} is not a known time zone, so times are in UTC: ");
        assert!(
            message.starts_with(&expected) && message.lines().count() == 1,
            "{name}: {message}"
        );
    }
    // Systems without a time zone database usually have one of these settings, so gpumon must print
    // no warning about them.
    for (name, minutes_east) in [("UTC", 0), ("Etc/UTC", 0), ("IST-5:30", INDIA_MINUTES)] {
        assert_eq!(time(name, &none, minutes_east), "", "{name}");
    }
}

#[test]
fn tz_does_not_read_files_in_working_directory() {
    let fake = FakeNvml::new(SCENARIO);
    let zoneinfo = create_zoneinfo(&fake);
    let mut command =
        fake.gpumon_command(&["smi", "--query-gpu=timestamp", "--format=csv,noheader"]);
    command.current_dir(Path::new(&zoneinfo).join("Asia"));
    let message = assert_prints_current_time(
        set_time_zone(command, "Kolkata", &zoneinfo),
        "%Y/%m/%d %H:%M:%S",
        0,
    );
    assert!(
        message.contains("TZ=Kolkata is not a known time zone"),
        "{message}"
    );
}

#[test]
fn tables_and_listings_show_local_time() {
    let fake = FakeNvml::new(SCENARIO);
    let zoneinfo = create_zoneinfo(&fake);
    for (arguments, format) in [
        (&[][..], "%H:%M:%S"),
        (&["--short"], "%H:%M:%S"),
        (&["smi"], "%a %b %e %H:%M:%S %Y"),
        (&["smi", "-q"], "%a %b %e %H:%M:%S %Y"),
        (&["smi", "-q", "-x"], "%a %b %e %H:%M:%S %Y"),
        (
            &["smi", "dmon", "-c", "1", "-o", "DT"],
            "%Y%m%d    %H:%M:%S",
        ),
        (&["smi", "pmon", "-c", "1", "-o", "T"], "%H:%M:%S"),
        (&["top", "--once"], "%H:%M:%S"),
    ] {
        let messages = assert_prints_current_time(
            set_time_zone(fake.gpumon_command(arguments), "Asia/Kolkata", &zoneinfo),
            format,
            INDIA_MINUTES,
        );
        assert_eq!(messages, "", "{arguments:?}");
    }
    let folder = fake.path("reports");
    fs::create_dir(&folder).unwrap();
    let mut bundle = set_time_zone(
        fake.gpumon_command(&["doctor", "--bundle", "--yes"]),
        "AAA-24",
        &zoneinfo,
    );
    let from_ms = now_ms();
    bundle.current_dir(&folder).output().unwrap();
    let names: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().file_name())
        .collect();
    let is_named = |at_ms| {
        names
            == [&*format_local(
                at_ms,
                24 * 60,
                "gpumon-bundle-%Y-%m-%d.tar.gz",
            )]
    };
    assert!(is_named(from_ms) || is_named(now_ms()), "{names:?}");
}

#[test]
fn recorded_times_are_shown_in_local_time() {
    let fake = FakeNvml::new(SCENARIO);
    let zoneinfo = create_zoneinfo(&fake);
    let file = fake.path("a.gz");
    let file = file.to_str().unwrap();
    let local = |arguments: &[&str]| {
        set_time_zone(fake.gpumon_command(arguments), "Asia/Kolkata", &zoneinfo)
    };
    let recorded = local(&["record", file, "--interval-ms", "100", "--duration", "2s"])
        .output()
        .unwrap();
    assert!(recorded.status.success(), "{}", stderr_text(&recorded));
    let rows = |from: &str| {
        let output = local(&["export", file, "--from", from, "--metrics", "power"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{from}: {}", stderr_text(&output));
        stdout_text(&output).lines().count()
    };
    let csv = stdout_text(
        &local(&["export", file, "--metrics", "power"])
            .output()
            .unwrap(),
    );
    let first_ms: u64 = csv
        .lines()
        .nth(1)
        .unwrap()
        .split(',')
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    // A range that begins at the start time of the recording contains all of its rows. The time may
    // be given with or without a date.
    for format in ["%Y-%m-%dT%H:%M:%S", "today %H:%M:%S", "%H:%M:%S"] {
        assert_eq!(
            rows(&format_local(first_ms, INDIA_MINUTES, format)),
            csv.lines().count(),
            "{format}"
        );
    }
    let from = format_local(first_ms, INDIA_MINUTES, "%Y-%m-%d %H:%M:%S");
    assert_refused_with(
        local(&["replay", file, "--from", "2020-02-02"]),
        2,
        &["2020-02-02 00:00:00 is not in", &from],
    );
    let mut screen = local(&["replay", file]);
    screen
        .env("TERM", "xterm-256color")
        .env("LC_ALL", "C.UTF-8");
    let mut terminal = Tty::start(&screen, 120, 30);
    terminal.wait_for_text(&format_local(first_ms, INDIA_MINUTES, "%Y-%m-%d %H:%M"));
    terminal.press("q");
    assert!(terminal.wait_for_end().success());
    let compared = stdout_text(&local(&["compare", file, file]).output().unwrap());
    assert!(compared.contains(&from), "{from}: {compared}");
}

#[test]
fn server_silences_alerts_in_local_time() {
    let fake = FakeNvml::new(SCENARIO);
    let zoneinfo = create_zoneinfo(&fake);
    // The range is two hours around the current time in India.
    let [from, to] = [-1, 1].map(|hours| {
        let at_ms = now_ms().checked_add_signed(hours * 3_600_000).unwrap();
        format_local(at_ms, INDIA_MINUTES, "%H:%M")
    });
    let rules = fake.path("alerts.toml");
    let rule = "[[rule]]\nname = \"hot\"\nfield = \"temperature.gpu_celsius\"\nabove = 85\n";
    fs::write(&rules, format!("{rule}silence = [\"{from}-{to}\"]\n")).unwrap();
    let serve = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--alerts",
        rules.to_str().unwrap(),
    ];
    for (name, is_silenced) in [
        ("Asia/Kolkata", true),
        ("IST-5:30", true),
        ("", false),
        ("Mars", false),
    ] {
        let log = fake.path("log");
        let mut command = set_time_zone(fake.gpumon_command(&serve), name, &zoneinfo);
        let mut server = command
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut listed = Value::Null;
        wait_for_condition("the server lists its alerts", || {
            let output = fake
                .gpumon_command(&["alerts", "list", "--json"])
                .output()
                .unwrap();
            listed = serde_json::from_slice(&output.stdout).unwrap_or_default();
            listed["rules"].is_array()
        });
        send_signal("-TERM", server.id());
        server.wait().unwrap();
        assert_eq!(
            listed["rules"][0]["silenced"], is_silenced,
            "{name}: {listed}"
        );
        let warnings = fs::read_to_string(&log)
            .unwrap()
            .matches("is not a known time zone")
            .count();
        assert_eq!(warnings, usize::from(name == "Mars"), "{name}");
    }
}

#[test]
fn reports_of_a_server_show_local_time() {
    let fake = FakeNvml::new(SCENARIO);
    let zoneinfo = create_zoneinfo(&fake);
    let server = Server::start_with_fake(&fake, &["--interval-ms", "200"]);
    wait_for_condition("the server has two samples", || {
        server.get("/api/v1/history").json()["times_ms"]
            .as_array()
            .is_some_and(|times| times.len() > 1)
    });
    for (arguments, format) in [
        (&["usage", "--since", "-1h"][..], " to %Y-%m-%d %H:%M:%S"),
        (&["smi"], "%a %b %e %H:%M:%S %Y"),
        (&[], "%H:%M:%S"),
    ] {
        let messages = assert_prints_current_time(
            set_time_zone(fake.gpumon_command(arguments), "Asia/Kolkata", &zoneinfo),
            format,
            INDIA_MINUTES,
        );
        assert_eq!(messages, "", "{arguments:?}");
    }
    let data = fake.path("data");
    fs::create_dir(&data).unwrap();
    let first_ms = write_history(&data, 2);
    let report = fake.gpumon_command(&["job", "88123", "--data-dir", data.to_str().unwrap()]);
    let report = stdout_text(
        &set_time_zone(report, "Asia/Kolkata", &zoneinfo)
            .output()
            .unwrap(),
    );
    let begin = format_local(first_ms + 3_000, INDIA_MINUTES, "%Y-%m-%d %H:%M:%S");
    assert!(report.contains(&begin), "{begin}: {report}");
}
