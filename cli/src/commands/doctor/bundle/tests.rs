use std::fs;

use clap::{Args as _, FromArgMatches as _};

use super::super::{
    report::{Finding, Readings},
    runtime,
};
use crate::local_server::ServerArgs;

use super::*;

#[test]
fn name_has_same_placeholder_in_all_bundle_files() {
    let root = tempfile::tempdir().unwrap();
    for (folder, name, text) in [
        (
            "etc",
            "passwd",
            "root:x:0:0::/root:\nzoe:x:1001:1001:Zoe:/home/zoe:\npostgres:x:105:5::/var:\n",
        ),
        (
            "dev",
            "kmsg",
            "4,1,10,-;NVRM: GPU at PCI:0000:3b:00: GPU-3647F3A1-f2a2-89c1-304c-bc9ec80f4180\n\
                 4,2,20,-;NVRM: GPU Board Serial Number: 1659978082255\n\
                 4,3,30,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=my, secret, Ch 00000008\n\
                 4,4,40,-;NVRM: API mismatch: the client 'my_secret' (pid 1005)\n\
                 4,5,50,-;NVRM: zoe's postgres from 10.1.2.3\n",
        ),
    ] {
        fs::create_dir(root.path().join(folder)).unwrap();
        fs::write(root.path().join(folder).join(name), text).unwrap();
    }
    let environment = [
        (
            "CUDA_VISIBLE_DEVICES",
            "GPU-3647f3a1-f2a2-89c1-304c-bc9ec80f4180",
        ),
        ("NVIDIA_API_KEY", "hunter2"),
        ("SECRET", "hunter3"),
    ];
    let environment = environment
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let nowhere = ServerArgs::augment_args(clap::Command::new("x"))
        .get_matches_from(["x", "--control=/home/x"]);
    let finding = Finding::new_problem(
        "library",
        "no /home/zoe/lib.so\tof \u{1b}[31mzoe",
        "ask my, secret",
    );
    let collected = CollectedData {
        machine: &Machine::with_root(root.path()),
        driver: &DriverState::Silent,
        server: &runtime::fetch_server_state(&ServerArgs::from_arg_matches(&nowhere).unwrap()),
        report: Report::new(vec![finding], Readings::default()),
        paths: Vec::new(),
        settings: Some("top.theme = \"light\"\n".to_owned()),
    };
    let (files, counts) = build_files(collected, &environment);
    let text = |file: &File| match &file.content {
        Content::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Content::Link(target) => target.display().to_string(),
    };
    let file = |name| text(files.iter().find(|file| file.name == name).unwrap());
    assert_eq!(
        file("kernel-log.txt"),
        "10 NVRM: GPU at PCI:0000:3b:00: GPU-id-1\n20 NVRM: GPU Board Serial Number: serial-1\n\
             30 NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=program-1, Ch 00000008\n\
             40 NVRM: API mismatch: the client 'program-2' (pid 1005)\n\
             50 NVRM: user-1's postgres from address-1\n"
    );
    assert_eq!(
        file("environment.txt"),
        "CUDA_VISIBLE_DEVICES=GPU-id-1\nNVIDIA_API_KEY is set\n"
    );
    assert!(
        file("doctor.txt").contains("no path-2of  user-1"),
        "{}",
        file("doctor.txt")
    );
    assert!(file("config.toml").contains("light"));
    assert!(file("doctor.json").contains("ask program-1"));
    assert!(file("server.json").contains("path-1") && file("sample.json").contains("10 s"));
    assert_eq!(counts[&NameKind::Id], 1);
    let secrets = [
        "zoe",
        "secret",
        "hunter",
        "3647f3a1",
        "1659978082255",
        "10.1.2.3",
        "/home",
    ];
    for (file, secret) in files
        .iter()
        .flat_map(|file| secrets.map(|secret| (file, secret)))
    {
        let (name, text) = (&file.name, text(file));
        assert!(
            !text.to_lowercase().contains(secret),
            "{secret} is in {name}: {text}"
        );
    }
}

#[test]
fn newest_kernel_messages_or_error_are_returned() {
    let root = tempfile::tempdir().unwrap();
    let machine = Machine::with_root(root.path());
    assert!(
        read_gpu_messages(&machine)
            .unwrap_err()
            .contains("/dev/kmsg")
    );
    fs::create_dir(root.path().join("dev")).unwrap();
    let log = |count| {
        (0..count)
            .map(|number| format!("4,1,{number},-;NVRM: x\n"))
            .collect::<Vec<_>>()
            .concat()
    };
    fs::write(root.path().join("dev/kmsg"), log(0)).unwrap();
    assert!(
        read_gpu_messages(&machine)
            .unwrap_err()
            .contains("no message")
    );
    fs::write(root.path().join("dev/kmsg"), log(301)).unwrap();
    let messages = read_gpu_messages(&machine).unwrap();
    assert_eq!(
        (messages.len(), &*messages[0], &*messages[299]),
        (300, "1 NVRM: x", "300 NVRM: x")
    );
}
