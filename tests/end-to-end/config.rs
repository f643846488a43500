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
    Fake, Server, Tty, ask, eventually, gpumon, is_refusal, send, signal, stderr, stdout,
    write_secret,
};

/// Writes the user's file, and returns a command that reads it.
fn with_settings(fake: &Fake, settings: &str, arguments: &[&str]) -> Command {
    fs::create_dir_all(fake.path("config/gpumon")).unwrap();
    fs::write(user_file(fake), settings).unwrap();
    let mut command = fake.gpumon(arguments);
    command.env("XDG_CONFIG_HOME", fake.path("config"));
    command
}

fn user_file(fake: &Fake) -> PathBuf {
    fake.path("config/gpumon/config.toml")
}

fn interval_ms(server: &Server) -> u64 {
    server.get("/api/v1/snapshot").json()["sample"]["interval_ms"]
        .as_u64()
        .unwrap_or_default()
}

/// Returns the next log message about reloaded settings.
#[track_caller]
fn reload_message(server: &mut Server) -> String {
    loop {
        let message = server.next_message();
        assert!(!message.is_empty(), "the log ended");
        if message.contains("settings reloaded") {
            return message;
        }
    }
}

#[track_caller]
fn refused(mut command: Command, words: &str) {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        stderr(&output).contains(words) && is_refusal(&stderr(&output)),
        "{}",
        stderr(&output)
    );
}

/// Returns the value of a setting and its kind of origin.
fn setting(mut command: Command, key: &str) -> (Value, String) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let shown: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let all = shown["settings"].as_array().unwrap();
    let found = all.iter().find(|setting| setting["key"] == key).unwrap();
    (
        found["value"].clone(),
        found["origin"]["kind"].as_str().unwrap().to_owned(),
    )
}

#[test]
fn a_file_a_variable_and_a_flag_win_in_this_order() {
    let fake = Fake::new("gpus = 1");
    let show = |more: &[&str], variable: Option<&str>, file: &str| {
        let mut command = with_settings(
            &fake,
            file,
            &[&["config", "show", "--json", "serve"], more].concat(),
        );
        variable.map(|value| command.env("GPUMON_INTERVAL_MS", value));
        setting(command, "interval-ms")
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
    let mut named = with_settings(&fake, file, &show);
    named.env("GPUMON_CONFIG", &other);
    assert_eq!(setting(named, "interval-ms"), of(500, "file"));
    let none = with_settings(&fake, file, &[&["--config", "none"], &show[..]].concat());
    assert_eq!(setting(none, "interval-ms"), of(1000, "default"));
}

#[test]
fn a_server_does_what_its_file_says() {
    let fake = Fake::new("gpus = 1");
    let file = "[serve]\nlisten = \"127.0.0.1:0\"\ninterval-ms = 200\nmetrics-processes = true\n";
    let server = Server::start(with_settings(&fake, file, &["serve"]));
    eventually("it samples as often as the file says", || {
        interval_ms(&server) == 200
    });
    eventually("it is ready", || server.get("/readyz").status == 200);
    // An environment variable names the server, so the file does not have to.
    assert!(fake.gpumon(&["--json"]).output().unwrap().status.success());
    let socket = fake.path("own.sock");
    let file = format!(
        "source = \"sim:2\"\ncontrol = \"{}\"\n[serve]\nlisten = \"127.0.0.1:0\"\n",
        socket.display()
    );
    let command = |arguments: &[&str]| {
        let mut command = with_settings(&fake, &file, arguments);
        command
            .env_remove("GPUMON_CONTROL")
            .env_remove("GPUMON_NVML_LIB");
        command
    };
    let _simulated = Server::start(command(&["serve"]));
    eventually("commands find the server where the file says", || {
        command(&["usage", "--json"])
            .output()
            .unwrap()
            .status
            .success()
    });
    assert!(socket.exists());
    // The top-level source also applies to nvidia-smi's commands.
    let listed = command(&["-L"]).output().unwrap();
    assert_eq!(stdout(&listed).lines().count(), 2, "{}", stderr(&listed));
}

#[test]
fn mistakes_are_refused_with_their_place() {
    let fake = Fake::new("gpus = 1");
    let with = |settings: &str, arguments: &[&str]| with_settings(&fake, settings, arguments);
    let lisen = "[serve]\nlisen = \"127.0.0.1:0\"\n";
    refused(
        with(lisen, &["serve"]),
        "config.toml:2:1: unknown key `lisen` in [serve]: did you mean `listen`?",
    );
    refused(
        with("[serve]\nlisten = 9123\n", &["serve"]),
        "config.toml:2:10: `serve.listen` cannot be 9123: use a text",
    );
    refused(
        with("sorce = \"sim\"\n", &["--json"]),
        "config.toml:1:1: unknown key `sorce`: did you mean `source`?",
    );
    refused(with("sorce = \"sim\"\n", &["-L"]), "did you mean `source`?");
    refused(with("source = \n", &["info"]), "config.toml:1:");
    assert!(
        with(lisen, &["--json"]).output().unwrap().status.success(),
        "that is the server's alone"
    );
    let doctor = with(lisen, &["doctor"]).output().unwrap();
    assert!(
        stdout(&doctor).contains("has 1 mistake"),
        "{}",
        stdout(&doctor)
    );

    let file = user_file(&fake);
    fs::write(&file, vec![b'#'; (1 << 20) + 1]).unwrap();
    let mut huge = fake.gpumon(&["info"]);
    huge.env("XDG_CONFIG_HOME", fake.path("config"));
    refused(huge, "config.toml is larger than 1048576 bytes");
    refused(
        fake.gpumon(&["--config", "/nowhere/config.toml", "info"]),
        "cannot read /nowhere/config.toml",
    );
    // A directory is refused even for root, who can read any file.
    refused(
        fake.gpumon(&["--config", "/tmp", "info"]),
        "/tmp is not a regular file",
    );
}

#[test]
fn check_names_all_mistakes_also_those_of_the_alert_file() {
    let fake = Fake::new("gpus = 1");
    fs::create_dir_all(fake.path("config/gpumon")).unwrap();
    fs::write(
        fake.path("config/gpumon/alerts.toml"),
        "[[rule]]\nname = \"x\"\nfield = \"temperature.gpu_celcius\"\nabove = 1\n",
    )
    .unwrap();
    let file = "[serve]\nalerts = \"alerts.toml\"\n[top]\ntheme = \"lihgt\"\n";
    let output = with_settings(&fake, file, &["config", "check"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(
        said.contains(
            "config.toml:4:9: `top.theme` cannot be \"lihgt\": for `lihgt`, did you mean `light`?"
        ),
        "{said}"
    );
    assert!(said.contains("alerts.toml:3:9: unknown field"), "{said}");
    let json = with_settings(&fake, file, &["config", "check", "--json"])
        .output()
        .unwrap();
    let report: Value = serde_json::from_str(&stdout(&json)).unwrap();
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
        .gpumon(&["config", "check", fake.path("link.toml").to_str().unwrap()])
        .output()
        .unwrap();
    assert!(
        output.status.success() && stdout(&output).ends_with("link.toml: ok\n"),
        "{}",
        stderr(&output)
    );
    let missing = gpumon(&["config", "check", "/nowhere.toml"])
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(2));
    let example = gpumon(&["config", "example"]).output().unwrap();
    fs::write(&real, &example.stdout).unwrap();
    assert!(
        gpumon(&["config", "check", real.to_str().unwrap()])
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn a_hang_up_reads_settings_anew_and_keeps_them_where_they_are_wrong() {
    let fake = Fake::new("gpus = 1\n[[process]]\ngpu = 0\npid = 1\nmemory = \"1 GiB\"\n");
    let settings = |interval_ms: u32, more: &str| {
        format!("[serve]\nlisten = \"127.0.0.1:0\"\ninterval-ms = {interval_ms}\n{more}")
    };
    let mut command = with_settings(&fake, &settings(1000, ""), &["serve"]);
    command.stdin(Stdio::null());
    let mut server = Server::start(command);
    server.next_message();
    let has_processes = |server: &Server| {
        server
            .get("/metrics")
            .body
            .contains("gpumon_process_memory_bytes{")
    };
    eventually("it is ready", || server.get("/readyz").status == 200);
    assert!(!has_processes(&server));

    fs::write(
        user_file(&fake),
        settings(
            200,
            "metrics-processes = true\nexit-with-parent = false\nprocfs = \"/other\"\n",
        ),
    )
    .unwrap();
    signal("-HUP", server.child.id());
    let told = server.next_message();
    assert!(
        told.contains("settings reloaded: --interval-ms, --metrics-processes changed"),
        "{told}"
    );
    let told = server.next_message();
    assert!(
        told.contains("settings that take effect at the next start: --procfs"),
        "{told}"
    );
    eventually("it samples as often as the file says now", || {
        interval_ms(&server) == 200
    });
    eventually("metrics tell of processes", || has_processes(&server));

    fs::write(user_file(&fake), settings(500, "lisen = 1\n")).unwrap();
    signal("-HUP", server.child.id());
    let told = server.next_message();
    assert!(
        told.contains("not reloaded") && told.contains("config.toml:4:1: unknown key `lisen`"),
        "{told}"
    );
    assert_eq!(interval_ms(&server), 200, "as before");

    // The file names alert rules for the first time.
    let rules = fake.path("config/gpumon/alerts.toml");
    fs::write(
        &rules,
        "[[rule]]\nname = \"hot\"\nfield = \"temperature.gpu_celsius\"\nabove = \"85 °C\"\n",
    )
    .unwrap();
    fs::write(
        user_file(&fake),
        settings(200, "alerts = \"alerts.toml\"\n"),
    )
    .unwrap();
    signal("-HUP", server.child.id());
    eventually("its rules are there", || {
        server.get("/api/v1/alerts").json()["rules"][0]["name"] == "hot"
    });
    assert!(
        !has_processes(&server),
        "what the file sets no more is as it is by default"
    );
    fs::remove_file(user_file(&fake)).unwrap();
    signal("-HUP", server.child.id());
    eventually("and go with the file", || {
        server.get("/api/v1/alerts").json()["rules"]
            .as_array()
            .unwrap()
            .is_empty()
    });
    let (status, _) = server.terminate();
    assert!(status.success(), "it went on all the while");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hang_up_brings_a_proxy_to_whom_nobody_is_the_own_user_and_takes_it_away() {
    let fake = Fake::new("gpus = 1");
    let settings = |more: &str| format!("[serve]\nlisten = \"127.0.0.1:0\"\n{more}");
    let mut command = with_settings(&fake, &settings(""), &["serve"]);
    command.stdin(Stdio::null());
    let mut server = Server::start(command);
    server.next_message();
    eventually("it is ready", || server.get("/readyz").status == 200);
    let origin = "Origin: https://gpus.example.org";
    let by_proxy =
        |server: &Server| ask(server.port, "/api/v1/snapshot?brief=true", &[origin]).status;
    // A persistent connection of the server's own user.
    let lasting = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let mark = || {
        let body = r#"{"text":"a"}"#;
        let head = "POST /api/v1/marks HTTP/1.1\r\nHost: localhost\r\nX-Gpumon: run\r\nContent-Type: application/json";
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
    let mut stream = server.stream().await;
    stream.next_of("hello").await;

    fs::write(
        user_file(&fake),
        settings("public-origin = [\"https://gpus.example.org\"]\n"),
    )
    .unwrap();
    signal("-HUP", server.child.id());
    let told = reload_message(&mut server);
    assert!(
        told.contains("settings reloaded: --public-origin changed"),
        "{told}"
    );
    assert_eq!(
        (mark(), by_proxy(&server)),
        ("403".to_owned(), 200),
        "at once, on each connection"
    );
    while stream.next().await.is_some() {}
    let mut stream = server.stream().await;
    stream.next_of("hello").await;

    fs::write(user_file(&fake), settings("")).unwrap();
    signal("-HUP", server.child.id());
    assert!(reload_message(&mut server).contains("--public-origin changed"));
    assert_eq!((mark(), by_proxy(&server)), ("201".to_owned(), 403));
    while stream.next().await.is_some() {}
}

#[test]
fn a_hang_up_takes_from_users_with_a_password_what_it_takes_from_others() {
    let fake = Fake::new("gpus = 1");
    let users = fake.path("users.yml");
    // The hash of `correct horse`.
    let hash = "$2b$04$9KVBEGvapFjzzFQjgF330O/446X5e.EFNWNC3OenoHMAnjzfjtnRe";
    write_secret(&users, &format!("basic_auth_users:\n  ana: {hash}\n"));
    let settings = |may: bool| format!("[serve]\nweb-config = {users:?}\nallow-runs = {may}\n");
    let mut server = Server::start(with_settings(
        &fake,
        &settings(true),
        &["serve", "--listen", "127.0.0.1:0"],
    ));
    let ana = [
        "X-Gpumon: run",
        "Authorization: Basic YW5hOmNvcnJlY3QgaG9yc2U=",
    ];
    let mark =
        |server: &Server| send(server.port, "POST /api/v1/marks", &ana, r#"{"text":"a"}"#).status;
    assert_eq!(mark(&server), 201);
    for (may, status) in [(false, 403), (true, 201)] {
        fs::write(user_file(&fake), settings(may)).unwrap();
        signal("-HUP", server.child.id());
        assert!(reload_message(&mut server).contains("--allow-runs changed"));
        eventually("it holds", || mark(&server) == status);
    }
}

#[test]
fn a_file_that_may_not_be_read_stops_a_server_and_not_a_screen() {
    let fake = Fake::new("gpus = 1");
    let mut command = with_settings(
        &fake,
        "[top]\ntheme = \"light\"\n",
        &["serve", "--listen", "127.0.0.1:0"],
    );
    fs::set_permissions(user_file(&fake), fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(user_file(&fake)).is_ok() {
        // Root can read any file, but not a directory with this name.
        fs::remove_file(user_file(&fake)).unwrap();
        fs::create_dir(user_file(&fake)).unwrap();
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    let is_refused = ["cannot read", "is not a regular file"]
        .iter()
        .any(|words| said.contains(words));
    assert!(is_refused && said.contains("config.toml"), "{said}");
    let mut top = fake.gpumon(&["top"]);
    top.env("XDG_CONFIG_HOME", fake.path("config"))
        .env("TERM", "xterm-256color")
        .env("LC_ALL", "C.UTF-8");
    let mut terminal = Tty::start(&top, 160, 30);
    terminal.wait_for("config.toml");
    terminal.press("q");
    assert!(terminal.ended().success());
}

#[test]
fn history_is_kept_where_a_file_says_and_else_where_the_service_does() {
    let fake = Fake::new("gpus = 1");
    let (usual, other) = (fake.path("usual"), fake.path("config/gpumon/other"));
    let arguments = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--default-data-dir",
        usual.to_str().unwrap(),
    ];
    let server = Server::start(with_settings(
        &fake,
        "[serve]\ndata-dir = \"other\"\n",
        &arguments,
    ));
    eventually("history is where the file says", || {
        other.join("history.db").exists()
    });
    assert!(!usual.exists());
    drop(server);
    let _server = Server::start(with_settings(&fake, "", &arguments));
    eventually("history is where the service says", || {
        usual.join("history.db").exists()
    });
}
