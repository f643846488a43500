//! Settings files: precedence, errors, and the settings that a running server reloads.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::support::{
    FakeNvml, Server, Tty, gpumon_command, is_refusal, send_get, send_request, send_signal,
    stderr_text, stdout_text, wait_for_condition, write_secret,
};

/// Writes the user's file, and returns a command that reads it.
fn command_with_settings(fake: &FakeNvml, settings: &str, arguments: &[&str]) -> Command {
    fs::create_dir_all(fake.path("config/gpumon")).unwrap();
    fs::write(user_settings_file(fake), settings).unwrap();
    let mut command = fake.gpumon_command(arguments);
    command.env("XDG_CONFIG_HOME", fake.path("config"));
    command
}

fn user_settings_file(fake: &FakeNvml) -> PathBuf {
    fake.path("config/gpumon/config.toml")
}

fn sampling_interval_ms(server: &Server) -> u64 {
    server.get("/api/v1/snapshot").json()["sample"]["interval_ms"]
        .as_u64()
        .unwrap_or_default()
}

/// Returns the next log message about reloaded settings.
#[track_caller]
fn next_reload_message(server: &mut Server) -> String {
    loop {
        let message = server.next_message();
        assert!(!message.is_empty(), "the log has ended");
        if message.contains("settings reloaded") {
            return message;
        }
    }
}

#[track_caller]
fn assert_refused(mut command: Command, words: &str) {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr_text(&output));
    assert!(
        stderr_text(&output).contains(words) && is_refusal(&stderr_text(&output)),
        "{}",
        stderr_text(&output)
    );
}

/// Returns the value of a setting and its kind of origin.
fn read_setting_and_origin(mut command: Command, key: &str) -> (Value, String) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr_text(&output));
    let shown: Value = serde_json::from_str(&stdout_text(&output)).unwrap();
    let all = shown["settings"].as_array().unwrap();
    let found = all.iter().find(|setting| setting["key"] == key).unwrap();
    (
        found["value"].clone(),
        found["origin"]["kind"].as_str().unwrap().to_owned(),
    )
}

#[test]
fn flag_overrides_variable_and_variable_overrides_file() {
    let fake = FakeNvml::new("gpus = 1");
    let show = |more: &[&str], variable: Option<&str>, file: &str| {
        let mut command = command_with_settings(
            &fake,
            file,
            &[&["config", "show", "--json", "serve"], more].concat(),
        );
        variable.map(|value| command.env("GPUMON_INTERVAL_MS", value));
        read_setting_and_origin(command, "interval-ms")
    };
    let of = |value: u64, origin: &str| (Value::from(value), origin.to_owned());
    let file = "[serve]\ninterval-ms = 200\n";
    assert_eq!(show(&[], None, ""), of(1000, "default"));
    assert_eq!(show(&[], None, file), of(200, "file"));
    assert_eq!(show(&[], Some(""), file), of(200, "file"));
    assert_eq!(show(&[], Some("300"), file), of(300, "variable"));
    assert_eq!(
        show(&["--interval-ms", "400"], Some("300"), file),
        of(400, "flag")
    );
    // `--config` selects another file, or none.
    let other = fake.path("other.toml");
    fs::write(&other, "[serve]\ninterval-ms = 500\n").unwrap();
    let show = ["config", "show", "--json", "serve"];
    let mut named = command_with_settings(&fake, file, &show);
    named.env("GPUMON_CONFIG", &other);
    assert_eq!(
        read_setting_and_origin(named, "interval-ms"),
        of(500, "file")
    );
    let none = command_with_settings(&fake, file, &[&["--config", "none"], &show[..]].concat());
    assert_eq!(
        read_setting_and_origin(none, "interval-ms"),
        of(1000, "default")
    );
}

#[test]
fn server_uses_settings_file() {
    let fake = FakeNvml::new("gpus = 1");
    let file = "[serve]\nlisten = \"127.0.0.1:0\"\ninterval-ms = 200\nmetrics-processes = true\n";
    let server = Server::start(command_with_settings(&fake, file, &["serve"]));
    wait_for_condition("the server uses the interval of the settings file", || {
        sampling_interval_ms(&server) == 200
    });
    wait_for_condition("the server is ready", || {
        server.get("/readyz").status == 200
    });
    // An environment variable contains the address of the server, so the settings file does not
    // need it.
    assert!(
        fake.gpumon_command(&["--json"])
            .output()
            .unwrap()
            .status
            .success()
    );
    let socket = fake.path("own.sock");
    let file = format!(
        "source = \"sim:2\"\ncontrol = \"{}\"\n[serve]\nlisten = \"127.0.0.1:0\"\n",
        socket.display()
    );
    let command = |arguments: &[&str]| {
        let mut command = command_with_settings(&fake, &file, arguments);
        command
            .env_remove("GPUMON_CONTROL")
            .env_remove("GPUMON_NVML_LIB");
        command
    };
    let _simulated = Server::start(command(&["serve"]));
    wait_for_condition("commands use the socket of the settings file", || {
        command(&["usage", "--json"])
            .output()
            .unwrap()
            .status
            .success()
    });
    assert!(socket.exists());
    // The setting `source` at the top level of the settings file also applies to the commands of
    // nvidia-smi.
    let listed = command(&["-L"]).output().unwrap();
    assert_eq!(
        stdout_text(&listed).lines().count(),
        2,
        "{}",
        stderr_text(&listed)
    );
}

#[test]
fn invalid_settings_are_refused_with_location() {
    let fake = FakeNvml::new("gpus = 1");
    let with =
        |settings: &str, arguments: &[&str]| command_with_settings(&fake, settings, arguments);
    let lisen = "[serve]\nlisen = \"127.0.0.1:0\"\n";
    assert_refused(
        with(lisen, &["serve"]),
        "config.toml:2:1: unknown key `lisen` in [serve]: did you mean `listen`?",
    );
    assert_refused(
        with("[serve]\nlisten = 9123\n", &["serve"]),
        "config.toml:2:10: `serve.listen` cannot be 9123: use a string",
    );
    assert_refused(
        with("sorce = \"sim\"\n", &["--json"]),
        "config.toml:1:1: unknown key `sorce`: did you mean `source`?",
    );
    assert_refused(with("sorce = \"sim\"\n", &["-L"]), "did you mean `source`?");
    assert_refused(with("source = \n", &["info"]), "config.toml:1:");
    assert!(
        with(lisen, &["--json"]).output().unwrap().status.success(),
        "other commands ignore invalid settings of the server"
    );
    let doctor = with(lisen, &["doctor"]).output().unwrap();
    assert!(
        stdout_text(&doctor).contains("has 1 mistake"),
        "{}",
        stdout_text(&doctor)
    );

    let file = user_settings_file(&fake);
    fs::write(&file, vec![b'#'; (1 << 20) + 1]).unwrap();
    let mut huge = fake.gpumon_command(&["info"]);
    huge.env("XDG_CONFIG_HOME", fake.path("config"));
    assert_refused(
        huge,
        "config.toml is larger than the limit of 1048576 bytes",
    );
    assert_refused(
        fake.gpumon_command(&["--config", "/nowhere/config.toml", "info"]),
        "cannot read /nowhere/config.toml",
    );
    // A directory is refused even for root, who can read any file.
    assert_refused(
        fake.gpumon_command(&["--config", "/tmp", "info"]),
        "/tmp is not a regular file",
    );
}

#[test]
fn config_check_lists_all_errors_including_alert_file() {
    let fake = FakeNvml::new("gpus = 1");
    fs::create_dir_all(fake.path("config/gpumon")).unwrap();
    fs::write(
        fake.path("config/gpumon/alerts.toml"),
        "[[rule]]\nname = \"x\"\nfield = \"temperature.gpu_celcius\"\nabove = 1\n",
    )
    .unwrap();
    let file = "[serve]\nalerts = \"alerts.toml\"\n[top]\ntheme = \"lihgt\"\n";
    let output = command_with_settings(&fake, file, &["config", "check"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = stderr_text(&output);
    assert!(
        said.contains(
            "config.toml:4:9: `top.theme` cannot be \"lihgt\": unknown value `lihgt`; did you mean \
             `light`?"
        ),
        "{said}"
    );
    assert!(said.contains("alerts.toml:3:9: unknown field"), "{said}");
    let json = command_with_settings(&fake, file, &["config", "check", "--json"])
        .output()
        .unwrap();
    let report: Value = serde_json::from_str(&stdout_text(&json)).unwrap();
    assert_eq!(
        (
            report["mistakes"].as_array().unwrap().len(),
            &report["mistakes"][0]["line"]
        ),
        (2, &Value::from(4))
    );
    // The file is read through a link, and may have a byte order mark and Windows line endings.
    let real = fake.path("real.toml");
    fs::write(
        &real,
        "\u{feff}source = \"sim:2\"\r\n[serve]\r\ninterval-ms = 500\r\n",
    )
    .unwrap();
    symlink(&real, fake.path("link.toml")).unwrap();
    let output = fake
        .gpumon_command(&["config", "check", fake.path("link.toml").to_str().unwrap()])
        .output()
        .unwrap();
    assert!(
        output.status.success() && stdout_text(&output).ends_with("link.toml: ok\n"),
        "{}",
        stderr_text(&output)
    );
    let missing = gpumon_command(&["config", "check", "/nowhere.toml"])
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(2));
    let example = gpumon_command(&["config", "example"]).output().unwrap();
    fs::write(&real, &example.stdout).unwrap();
    assert!(
        gpumon_command(&["config", "check", real.to_str().unwrap()])
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn sighup_reloads_settings_and_keeps_them_if_invalid() {
    let fake = FakeNvml::new("gpus = 1\n[[process]]\ngpu = 0\npid = 1\nmemory = \"1 GiB\"\n");
    let settings = |interval_ms: u32, more: &str| {
        format!("[serve]\nlisten = \"127.0.0.1:0\"\ninterval-ms = {interval_ms}\n{more}")
    };
    let mut command = command_with_settings(&fake, &settings(1000, ""), &["serve"]);
    command.stdin(Stdio::null());
    let mut server = Server::start(command);
    server.next_message();
    let has_processes = |server: &Server| {
        server
            .get("/metrics")
            .body
            .contains("gpumon_process_memory_bytes{")
    };
    wait_for_condition("the server is ready", || {
        server.get("/readyz").status == 200
    });
    assert!(!has_processes(&server));

    fs::write(
        user_settings_file(&fake),
        settings(
            200,
            "metrics-processes = true\nexit-with-parent = false\nprocfs = \"/other\"\n",
        ),
    )
    .unwrap();
    send_signal("-HUP", server.child.id());
    let reported = server.next_message();
    assert!(
        reported.contains("settings reloaded: --interval-ms, --metrics-processes changed"),
        "{reported}"
    );
    let reported = server.next_message();
    assert!(
        reported.contains("settings that take effect only after a restart of the server: --procfs"),
        "{reported}"
    );
    wait_for_condition("the server uses the new interval", || {
        sampling_interval_ms(&server) == 200
    });
    wait_for_condition("the metrics contain processes", || has_processes(&server));

    fs::write(user_settings_file(&fake), settings(500, "lisen = 1\n")).unwrap();
    send_signal("-HUP", server.child.id());
    let reported = server.next_message();
    assert!(
        reported.contains("not reloaded")
            && reported.contains("config.toml:4:1: unknown key `lisen`"),
        "{reported}"
    );
    assert_eq!(
        sampling_interval_ms(&server),
        200,
        "the interval is unchanged"
    );

    // The settings file now names a file with alert rules, which it did not name before.
    let rules = fake.path("config/gpumon/alerts.toml");
    fs::write(
        &rules,
        "[[rule]]\nname = \"hot\"\nfield = \"temperature.gpu_celsius\"\nabove = \"85 °C\"\n",
    )
    .unwrap();
    fs::write(
        user_settings_file(&fake),
        settings(200, "alerts = \"alerts.toml\"\n"),
    )
    .unwrap();
    send_signal("-HUP", server.child.id());
    wait_for_condition("the alert rules were loaded", || {
        server.get("/api/v1/alerts").json()["rules"][0]["name"] == "hot"
    });
    assert!(
        !has_processes(&server),
        "a removed setting has its default again"
    );
    fs::remove_file(user_settings_file(&fake)).unwrap();
    send_signal("-HUP", server.child.id());
    wait_for_condition(
        "the alert rules were removed with the settings file",
        || {
            server.get("/api/v1/alerts").json()["rules"]
                .as_array()
                .unwrap()
                .is_empty()
        },
    );
    let (status, _) = server.terminate();
    assert!(status.success(), "the server kept running");
}

#[tokio::test(flavor = "multi_thread")]
async fn sighup_adds_and_removes_public_origin() {
    let fake = FakeNvml::new("gpus = 1");
    let settings = |more: &str| format!("[serve]\nlisten = \"127.0.0.1:0\"\n{more}");
    let mut command = command_with_settings(&fake, &settings(""), &["serve"]);
    command.stdin(Stdio::null());
    let mut server = Server::start(command);
    server.next_message();
    wait_for_condition("the server is ready", || {
        server.get("/readyz").status == 200
    });
    let origin = "Origin: https://gpus.example.org";
    let by_proxy =
        |server: &Server| send_get(server.port, "/api/v1/snapshot?brief=true", &[origin]).status;
    // A persistent connection of the server's own user.
    let lasting = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let mark = || {
        let body = r#"{"text":"a"}"#;
        let head = "POST /api/v1/marks HTTP/1.1\r\nHost: localhost\r\nX-Gpumon: \
                    run\r\nContent-Type: application/json";
        write!(
            &lasting,
            "{head}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = [0; 4096];
        let length = (&lasting).read(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[9..length.min(12)]).into_owned()
    };
    assert_eq!((mark(), by_proxy(&server)), ("201".to_owned(), 403));
    let mut stream = server.open_stream().await;
    stream.next_frame_of_type("hello").await;

    fs::write(
        user_settings_file(&fake),
        settings("public-origin = [\"https://gpus.example.org\"]\n"),
    )
    .unwrap();
    send_signal("-HUP", server.child.id());
    let reported = next_reload_message(&mut server);
    assert!(
        reported.contains("settings reloaded: --public-origin changed"),
        "{reported}"
    );
    assert_eq!(
        (mark(), by_proxy(&server)),
        ("403".to_owned(), 200),
        "the change applies at once to every connection"
    );
    while stream.next_frame().await.is_some() {}
    let mut stream = server.open_stream().await;
    stream.next_frame_of_type("hello").await;

    fs::write(user_settings_file(&fake), settings("")).unwrap();
    send_signal("-HUP", server.child.id());
    assert!(next_reload_message(&mut server).contains("--public-origin changed"));
    assert_eq!((mark(), by_proxy(&server)), ("201".to_owned(), 403));
    while stream.next_frame().await.is_some() {}
}

#[test]
fn sighup_revokes_run_permission_of_password_users() {
    let fake = FakeNvml::new("gpus = 1");
    let users = fake.path("users.yml");
    // The hash of `correct horse`.
    let hash = "$2b$04$9KVBEGvapFjzzFQjgF330O/446X5e.EFNWNC3OenoHMAnjzfjtnRe";
    write_secret(&users, &format!("basic_auth_users:\n  ana: {hash}\n"));
    let settings = |may: bool| format!("[serve]\nweb-config = {users:?}\nallow-runs = {may}\n");
    let mut server = Server::start(command_with_settings(
        &fake,
        &settings(true),
        &["serve", "--listen", "127.0.0.1:0"],
    ));
    let ana = [
        "X-Gpumon: run",
        "Authorization: Basic YW5hOmNvcnJlY3QgaG9yc2U=",
    ];
    let mark = |server: &Server| {
        send_request(server.port, "POST /api/v1/marks", &ana, r#"{"text":"a"}"#).status
    };
    assert_eq!(mark(&server), 201);
    for (may, status) in [(false, 403), (true, 201)] {
        fs::write(user_settings_file(&fake), settings(may)).unwrap();
        send_signal("-HUP", server.child.id());
        assert!(next_reload_message(&mut server).contains("--allow-runs changed"));
        wait_for_condition("the new setting is in effect", || mark(&server) == status);
    }
}

#[test]
fn unreadable_settings_stop_server_but_not_top() {
    let fake = FakeNvml::new("gpus = 1");
    let mut command = command_with_settings(
        &fake,
        "[top]\ntheme = \"light\"\n",
        &["serve", "--listen", "127.0.0.1:0"],
    );
    fs::set_permissions(user_settings_file(&fake), fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(user_settings_file(&fake)).is_ok() {
        // Root can read any file, so a directory takes the place of the file here.
        fs::remove_file(user_settings_file(&fake)).unwrap();
        fs::create_dir(user_settings_file(&fake)).unwrap();
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = stderr_text(&output);
    let is_refused = ["cannot read", "is not a regular file"]
        .iter()
        .any(|words| said.contains(words));
    assert!(is_refused && said.contains("config.toml"), "{said}");
    let mut top = fake.gpumon_command(&["top"]);
    top.env("XDG_CONFIG_HOME", fake.path("config"))
        .env("TERM", "xterm-256color")
        .env("LC_ALL", "C.UTF-8");
    let mut terminal = Tty::start(&top, 160, 30);
    terminal.wait_for_text("config.toml");
    terminal.press("q");
    assert!(terminal.wait_for_end().success());
}

#[test]
fn history_folder_comes_from_settings_or_default() {
    let fake = FakeNvml::new("gpus = 1");
    let (usual, other) = (fake.path("usual"), fake.path("config/gpumon/other"));
    let arguments = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--default-data-dir",
        usual.to_str().unwrap(),
    ];
    let server = Server::start(command_with_settings(
        &fake,
        "[serve]\ndata-dir = \"other\"\n",
        &arguments,
    ));
    wait_for_condition("the history is in the folder of the settings file", || {
        other.join("history.db").exists()
    });
    assert!(!usual.exists());
    drop(server);
    let _server = Server::start(command_with_settings(&fake, "", &arguments));
    wait_for_condition("the history is in the folder of the service", || {
        usual.join("history.db").exists()
    });
}
