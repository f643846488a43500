//! Permissions and links of files with secrets. Error messages do not quote the files.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink},
    process::Command,
};

use super::{RUN_TOKEN, ServerFiles, add_time_limit};
use crate::support::{
    assert_refused_with, gpumon_command, replace_file, wait_for_condition, write_secret,
};

/// Checks that the server does not start, and that its message has these words and no secret.
#[track_caller]
fn assert_start_is_refused(arguments: &[&str], words: &[&str]) {
    let all = [
        &[
            "--source",
            "sim",
            "serve",
            "--no-control",
            "--listen",
            "127.0.0.1:0",
        ],
        arguments,
    ]
    .concat();
    let mut command = add_time_limit(&gpumon_command(&all));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !said.contains(RUN_TOKEN) && !said.contains("PRIVATE KEY"),
        "{said}"
    );
    assert_refused_with(command, 2, words);
}

#[test]
fn token_file_readable_by_other_users_is_refused() {
    let house = ServerFiles::new();
    let [tokens, link] = ["tokens", "link"].map(|name| house.path(name));
    symlink(&tokens, &link).unwrap();
    for (mode, cure) in [
        (0o644, "chmod 600"),
        (0o604, "chmod 600"),
        (0o622, "chmod go-w"),
        (0o660, "chmod go-w"),
    ] {
        fs::set_permissions(&tokens, Permissions::from_mode(mode)).unwrap();
        for path in [&tokens, &link] {
            let path = path.to_str().unwrap();
            assert_start_is_refused(&["--token-file", path], &[path, cure]);
        }
    }
    assert_start_is_refused(
        &["--token-file", &house.path_text("none")],
        &["none", "No such file"],
    );
    assert_start_is_refused(
        &["--token-file", house.folder.path().to_str().unwrap()],
        &["regular file"],
    );
    let pipe = house.path_text("pipe");
    assert!(
        Command::new("mkfifo")
            .args(["-m", "600", &pipe])
            .status()
            .unwrap()
            .success()
    );
    assert_start_is_refused(&["--token-file", &pipe], &["pipe", "regular file"]);
}

#[test]
fn token_file_of_other_user_is_refused() {
    let house = ServerFiles::new();
    let chown = Command::new("chown")
        .arg("65534")
        .arg(house.path("tokens"))
        .output()
        .unwrap();
    if !chown.status.success() {
        println!("not run: only root can give a file away");
        return;
    }
    assert_start_is_refused(
        &["--token-file", &house.path_text("tokens")],
        &["belongs to user 65534", "chown"],
    );
    symlink(house.path("tokens"), house.path("link")).unwrap();
    assert_start_is_refused(
        &["--token-file", &house.path_text("link")],
        &["belongs to user 65534", "chown"],
    );
}

#[test]
fn token_file_errors_contain_line_number() {
    let house = ServerFiles::new();
    let tokens = house.path_text("tokens");
    let file = ["--token-file", &tokens];
    for (text, words) in [
        (String::new(), ["has no token", "openssl rand -hex 32"]),
        (
            format!("# comment\nrun ana {}", &RUN_TOKEN[..31]),
            [
                "tokens:2: the token has 31 characters",
                "openssl rand -hex 32",
            ],
        ),
        (
            format!("admin ana {RUN_TOKEN}"),
            [
                "tokens:1: the first word is not a scope",
                "metrics, read or run",
            ],
        ),
        (
            RUN_TOKEN.to_owned(),
            [
                "tokens:1: the line has 1 instead of 3 words",
                "SCOPE NAME TOKEN",
            ],
        ),
    ] {
        write_secret(&house.path("tokens"), &text);
        assert_start_is_refused(&file, &words);
    }
    let mut short = gpumon_command(&["--source", "sim", "serve", "--listen", "127.0.0.1:0"]);
    short.env("GPUMON_TOKEN", "short");
    assert_refused_with(
        add_time_limit(&short),
        2,
        &["GPUMON_TOKEN", "5 characters", "openssl rand -hex 32"],
    );
}

#[test]
fn readable_key_and_writable_certificate_are_refused() {
    let house = ServerFiles::new();
    let web = house.path_text("web.yml");
    for (file, mode, words) in [
        ("server.key", 0o644, ["key_file", "chmod 600"]),
        ("server.key", 0o620, ["key_file", "chmod go-w"]),
        ("server.crt", 0o666, ["cert_file", "chmod go-w"]),
        ("web.yml", 0o606, ["web.yml", "chmod go-w"]),
    ] {
        let before = fs::metadata(house.path(file)).unwrap().permissions();
        fs::set_permissions(house.path(file), Permissions::from_mode(mode)).unwrap();
        assert_start_is_refused(&["--web-config", &web], &words);
        fs::set_permissions(house.path(file), before).unwrap();
    }
    house.write_web_config(
        "basic_auth_users:\n  ana: $2b$04$9KVBEGvapFjzzFQjgF330O/446X5e.EFNWNC3OenoHMAnjzfjtnRe\n",
    );
    fs::set_permissions(house.path("web.yml"), Permissions::from_mode(0o644)).unwrap();
    assert_start_is_refused(&["--web-config", &web], &["web.yml", "chmod 600"]);
}

#[test]
fn web_configuration_errors_have_line_and_suggestion() {
    let house = ServerFiles::new();
    let web = house.path_text("web.yml");
    let key = fs::read_to_string(house.path("server.key")).unwrap();
    let inline = format!("  key: |\n    {}\n", key.trim_end().replace('\n', "\n    "));
    for (more, words) in [
        (
            "tls_server_confg: {}\n",
            [
                "line 4: unknown key 'tls_server_confg'",
                "did you mean 'tls_server_config'?",
            ],
        ),
        ("  min_version: TLS11\n", ["min_version", "TLS12"]),
        (
            "  cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]\n",
            ["cipher_suites", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
        ),
        (
            "  curve_preferences: [CurveP521]\n",
            ["CurveP521", "X25519"],
        ),
        (
            "  client_auth_type: RequireAnyClientCert\n",
            ["without verifying them", "RequireAndVerifyClientCert"],
        ),
        (
            "  client_auth_type: RequireAndVerifyClientCert\n",
            ["needs client_ca_file", "sign"],
        ),
        (
            "  client_ca_file: ca.crt\n",
            [
                "no effect without client_auth_type",
                "RequireAndVerifyClientCert",
            ],
        ),
        (inline.as_str(), ["both key and key_file", "remove one"]),
        ("basic_auth_users:\n  ana: secret\n", ["ana", "htpasswd"]),
        (
            "http_server_config:\n  headers:\n    Set-Cookie: a=b\n",
            ["cannot be set", "Strict-Transport-Security"],
        ),
        (
            "http_server_config:\n  headers:\n    Content-Security-Policy: \"a\\r\\nSet-Cookie: \
             b=c\"\n",
            ["Content-Security-Policy", "control character"],
        ),
        (
            "rate_limit: {interval: soon, burst: 3}\n",
            ["interval", "100ms"],
        ),
        ("\t- nothing\n", ["web.yml", "line"]),
    ] {
        house.write_web_config(more);
        assert_start_is_refused(&["--web-config", &web], &words);
    }
    house.write_web_config("");
    replace_file(&house.path("server.crt"), "nothing", 0o644);
    assert_start_is_refused(
        &["--web-config", &web],
        &["server.crt", "BEGIN CERTIFICATE"],
    );
    house
        .authority
        .issue_identity(&["localhost"])
        .write_files(house.folder.path());
    write_secret(&house.path("server.key"), &key);
    assert_start_is_refused(
        &["--web-config", &web],
        &["server.crt", "does not match its key"],
    );
}

#[test]
fn socket_is_private_and_does_not_follow_symlinks() {
    let folder = tempfile::tempdir().unwrap();
    let [socket, link, precious] =
        ["socket", "link", "precious"].map(|name| folder.path().join(name));
    let path = socket.to_str().unwrap();
    let mut server = gpumon_command(&["--source", "sim", "serve", "--socket", path])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_for_condition("the server has created its socket", || {
        fs::symlink_metadata(&socket).is_ok()
    });
    let file = fs::symlink_metadata(&socket).unwrap();
    assert!(
        file.file_type().is_socket() && file.mode() & 0o777 == 0o600,
        "{:o}",
        file.mode()
    );
    server.kill().unwrap();
    server.wait().unwrap();
    fs::write(&precious, "precious").unwrap();
    symlink(&precious, &link).unwrap();
    assert_refused_with(
        add_time_limit(&gpumon_command(&[
            "serve",
            "--socket",
            link.to_str().unwrap(),
        ])),
        2,
        &["not a socket"],
    );
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    // A link to a socket is not followed, because the socket could belong to another user.
    fs::remove_file(&link).unwrap();
    symlink(&socket, &link).unwrap();
    assert_refused_with(
        add_time_limit(&gpumon_command(&[
            "serve",
            "--socket",
            link.to_str().unwrap(),
        ])),
        2,
        &["not a socket"],
    );
}
