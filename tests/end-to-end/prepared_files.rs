//! Directories and files that another user has prepared: gpumon does not overwrite files through
//! links, and does not use files that others can write to.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
};

use crate::support::{FakeNvml, Server, assert_refused, wait_for_condition};

/// All file names that a server, its collector and benchmarks use in a data directory, and those
/// that earlier versions used.
const WRITTEN_FILES: [&str; 11] = [
    "history.lock",
    "history.db",
    "history.db-wal",
    "history.db-shm",
    "alerts.lock",
    "alerts.json",
    "alerts.json.part",
    "learned.json",
    "learned.json.new",
    "benchmarks.json",
    "benchmarks.json.new",
];

const ALERT_RULE: &str =
    "[[rule]]\nname = \"warm\"\nfield = \"temperature.gpu_celsius\"\nabove = 1\n";

fn write_file(fake: &FakeNvml, name: &str, text: &str, mode: u32) -> String {
    let path = fake.path(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn symlinks_in_data_directory_do_not_overwrite_files() {
    for links in [
        &WRITTEN_FILES[..],
        &WRITTEN_FILES[1..2],
        &WRITTEN_FILES[2..3],
        &WRITTEN_FILES[3..4],
        &WRITTEN_FILES[5..],
    ] {
        let fake = FakeNvml::new("gpus = 1\n[[gpu]]\nindex = 0\ntemperature_celsius = 70\n");
        let alerts = write_file(&fake, "rules.toml", ALERT_RULE, 0o644);
        let (data, victims) = (fake.path("data"), fake.path("victims"));
        for folder in [&data, &victims] {
            fs::create_dir(folder).unwrap();
            fs::set_permissions(folder, Permissions::from_mode(0o700)).unwrap();
        }
        for name in links {
            fs::write(victims.join(name), "precious").unwrap();
            symlink(victims.join(name), data.join(name)).unwrap();
        }
        let arguments = [
            "--interval-ms",
            "200",
            "--data-dir",
            data.to_str().unwrap(),
            "--alerts",
            &alerts,
        ];
        let mut server = Server::start_with_fake(&fake, &arguments);
        wait_for_condition("the alert fires", || {
            server.get("/api/v1/alerts").body.contains("\"warm\"")
        });
        wait_for_condition("the server has a history", || {
            server.get("/api/v1/history").json()["times_ms"]
                .as_array()
                .unwrap()
                .len()
                > 2
        });
        // On exit, the server writes its remaining data.
        server.terminate();
        for name in links {
            assert_eq!(
                fs::read_to_string(victims.join(name)).unwrap(),
                "precious",
                "{name} of {links:?}"
            );
        }
    }
}

#[test]
fn data_directory_writable_by_other_users_is_refused() {
    let fake = FakeNvml::new("gpus = 1");
    let alerts = write_file(&fake, "rules.toml", ALERT_RULE, 0o644);
    let data = fake.path("data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, Permissions::from_mode(0o777)).unwrap();
    let shown = data.to_str().unwrap();
    let server = Server::start_with_fake(
        &fake,
        &[
            "--interval-ms",
            "200",
            "--data-dir",
            shown,
            "--alerts",
            &alerts,
        ],
    );
    let cure = format!("run `chmod go-w {shown}`");
    wait_for_condition("the problem is reported", || {
        let history = server.get("/api/v1/history").json();
        history["storage"]["problem"]
            .as_str()
            .is_some_and(|problem| problem.contains(&cure))
    });
    let log = server.end_and_read_log();
    assert!(
        log.contains(&cure) && log.contains("history is not written") && log.contains("alerts: "),
        "{log}"
    );
    assert_eq!(fs::read_dir(&data).unwrap().count(), 0);
}

#[test]
fn files_writable_by_other_users_are_refused() {
    let fake = FakeNvml::new("gpus = 1");
    for mode in [0o664, 0o646] {
        let settings = write_file(&fake, "settings.toml", "source = \"sim:1\"\n", mode);
        assert_refused(
            fake.gpumon_command(&["--config", &settings, "--json"]),
            2,
            &format!("run `chmod go-w {settings}`"),
        );
        let alerts = write_file(&fake, "alerts.toml", ALERT_RULE, mode);
        let arguments = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--data-dir",
            "none",
            "--alerts",
            &alerts,
        ];
        assert_refused(
            fake.gpumon_command(&arguments),
            2,
            &format!("run `chmod go-w {alerts}`"),
        );
        let ssh = write_file(&fake, "ssh.conf", "Host *\n", mode);
        let arguments = ["fleet", "--hosts", "nowhere", "--ssh-config", &ssh];
        assert_refused(
            fake.gpumon_command(&arguments),
            2,
            &format!("run `chmod go-w {ssh}`"),
        );
    }
}
