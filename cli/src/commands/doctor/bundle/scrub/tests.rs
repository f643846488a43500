use serde_json::json;

use super::*;

fn scrub_text(known: &[(NameKind, &str)], text: &str) -> String {
    let mut scrubber = Scrubber::default();
    for (kind, original) in known {
        scrubber.add_name(*kind, original);
    }
    scrubber.scrub_text(text)
}

#[test]
fn recognizable_names_are_replaced_consistently() {
    for (text, clean) in [
        (
            "cannot load /home/ana/my.so: no file",
            "cannot load path-1: no file",
        ),
        (
            "`/opt/a,b/c.so`; (~/x), /opt/a,b/c.so.",
            "`path-1`; (path-2), path-1.",
        ),
        (
            "/dev/nvidia0 and /usr/lib/../../home/ana",
            "/dev/nvidia0 and path-1",
        ),
        (
            "/dev/shm/zoe, /proc/7/root/srv/zoe, /proc/self/cwd",
            "path-1, path-2, path-3",
        ),
        (
            "/run/nvidia-zoe, /run/nvidia/x, /proc/self/maps",
            "path-1, /run/nvidia/x, /proc/self/maps",
        ),
        (
            "/proc, /sys/class/, /run/nvidia, /usr, /opt, /home/",
            "/proc, /sys/class/, /run/nvidia, /usr, path-1, path-2",
        ),
        (":/usr/lib/x:/opt/a:/opt/b", ":/usr/lib/x:path-1:path-2"),
        ("/home/ana://x", "path-1"),
        ("20 MB/s, N/A, and/or, 9 / 5", "20 MB/s, N/A, and/or, 9 / 5"),
        (
            "see https://hub.example.org/user/ana?token=t.",
            "see address-1.",
        ),
        (
            "10.0.0.5:9123, fe80::1, 127.0.0.1:9123, [::1]:80",
            "address-1, address-2, 127.0.0.1:9123, [::1]:80",
        ),
        (
            "from 10.0.0.5-x, ana@example.org, 0c:42:a1:b2:c3:d4",
            "from address-1-x, address-2, address-3",
        ),
        (
            "580.159.04 at 12:30:11 of PCI:0000:3b:00, 0000:3b:00.0",
            "580.159.04 at 12:30:11 of PCI:0000:3b:00, 0000:3b:00.0",
        ),
        (
            "GPU-3647F3A1-f2a2-89c1-304c-bc9ec80f4180,MIG-3647f3a1-f2a2-89c1-304c-bc9ec80f4180",
            "GPU-id-1,MIG-id-1",
        ),
        (
            "GPU-3647F3A1,MIG-GPU-89c1/2/0,GPU-0, GPU-based",
            "GPU-id-1,MIG-GPU-id-2/2/0,GPU-0, GPU-based",
        ),
        (&"a1".repeat(32), "id-1"),
        (
            "faulted @ 0x7f2abc000000, 00000010",
            "faulted @ 0x7f2abc000000, 00000010",
        ),
    ] {
        assert_eq!(scrub_text(&[], text), clean, "{text}");
    }
}

#[test]
fn names_are_replaced_as_whole_words() {
    let known = [
        (NameKind::User, "a.*b("),
        (NameKind::User, "ana"),
        (NameKind::User, "root"),
        (NameKind::Job, "12"),
        (NameKind::Host, "gpu7.example.org"),
        (NameKind::Notebook, "work/top secret.ipynb"),
        (NameKind::Notebook, "/srv/merger/acme deal/train.ipynb"),
        (NameKind::Path, "/mnt/my disk/lib.so"),
        (NameKind::Path, "/mnt"),
        (NameKind::Path, "/home/ana b"),
    ];
    for (text, clean) in [
        (
            "by a.*b(, ana_2 and root, 12 times",
            "by user-1, user-2_2 and root, 12 times",
        ),
        ("analysis of banana", "analysis of banana"),
        ("gpu7 is gpu7.example.org", "host-1 is host-1"),
        ("top secret.ipynb (ana) idle", "notebook-1 (user-1) idle"),
        ("acme deal/train.ipynb idle", "notebook-1 idle"),
        (
            "merger/acme deal/train.ipynb, train.ipynb",
            "notebook-1, notebook-1",
        ),
        (
            "/mnt/my disk/lib.so, /mnt/other, /mnt",
            "path-1, path-2, path-3",
        ),
        ("/home/ana b/c/d.so: no; /home/ana b", "path-1: no; path-2"),
        ("Zoë's", "Zoë's"),
    ] {
        assert_eq!(scrub_text(&known, text), clean, "{text}");
    }
}

#[test]
fn names_are_replaced_at_any_position() {
    const BOLD: &str = "\u{1b}[1;31m";
    let around = [
        "", " ", "(", ")", ", ", "_", "-", "/", "~/", "'", "\"", "@", ".", ":", "://", "=", "\n",
        "\u{1b}", BOLD, "→",
    ];
    for name in [
        "ana", "a.*b(", "x y", "\\d+$1", "größe", "[", "7even", "42424", "\u{7528}",
    ] {
        for (before, behind) in around
            .iter()
            .flat_map(|before| around.map(|behind| (before, behind)))
        {
            let text = format!("{before}{name}{behind}{name}");
            let separated = if behind.is_empty() {
                format!("{before}{name}")
            } else {
                text
            };
            let clean = scrub_text(&[(NameKind::User, name)], &separated);
            assert!(!clean.contains(name), "{separated:?} became {clean:?}");
        }
    }
}

#[test]
fn names_in_driver_messages_are_replaced() {
    let mut scrubber = Scrubber::default();
    for message in [
        "Xid: 31, pid=7, name=my, prog, Ch 00000008",
        "Serial Number: 1320221",
        "pid=8, name=<unknown>, x",
        "pid=9, name=<zoe, x",
        "API mismatch: the client 'it's me' (pid 1005)",
        "Process information: process train.py pid 12 thread a worker pid 13",
        "GPU HANG: ecode 12:1:85dffffb, in my game [77]",
    ] {
        scrubber.add_names_in_message(message);
    }
    assert_eq!(
        scrubber.scrub_text("process train.py pid 12 thread a worker pid 13, in my game [77]"),
        "process program-1 pid 12 thread program-2 pid 13, in program-3 [77]"
    );
    assert_eq!(
        scrubber.scrub_text("name=my, prog, Ch 00000008; <unknown>"),
        "name=program-4, Ch 00000008; <unknown>"
    );
    assert_eq!(scrubber.scrub_text("Board 1320221"), "Board serial-1");
    assert_eq!(
        scrubber.scrub_text("<zoe, 'it's me' (pid 1005)"),
        "program-5, 'program-6' (pid 1005)"
    );
}

#[test]
fn json_keys_and_ordinary_words_are_not_replaced() {
    let mut scrubber = Scrubber::default();
    let process = json!({
        "pid": 7, "user": "memory", "name": { "value": "state", "at_ms": 1 }, "command": { "absent": "hidden" },
        "owner": { "notebook": { "kernel_id": "k", "path": "a b.ipynb" }, "parents": [{ "pid": 1, "name": "zsh" }] },
    });
    let mut object = json!({
        "memory": { "state": "running", "name": "NVIDIA H200" },
        "kernel": "5.15.90.1-microsoft-standard-WSL2",
        "processes": { "value": [process], "at_ms": 1 },
        "events": [
            { "condition": "held_idle", "text": "gone.py (eve) idle" },
            { "condition": "throttled", "text": "memory of the state" },
            { "what": "mark", "text": "memory", "user": "memory" },
        ],
    });
    scrubber.scrub_json(std::slice::from_mut(&mut object));
    assert_eq!(
        object["memory"],
        json!({ "state": "running", "name": "NVIDIA H200" })
    );
    assert_eq!(object["kernel"], "5.15.90.1-microsoft-standard-WSL2");
    let notebook = json!({ "kernel_id": "id-1", "path": "notebook-1" });
    let clean = json!({
        "pid": 7, "user": "user-1", "name": { "value": "program-1", "at_ms": 1 }, "command": { "absent": "hidden" },
        "owner": { "notebook": notebook, "parents": [{ "pid": 1, "name": "program-2" }] },
    });
    assert_eq!(object["processes"]["value"][0], clean);
    assert_eq!(object["events"][0]["text"], "text-1");
    assert_eq!(object["events"][1]["text"], "user-1 of the program-1");
    assert_eq!(
        object["events"][2],
        json!({ "what": "mark", "text": "text-2", "user": "user-1" })
    );
}

#[test]
fn partition_has_same_replaced_id_as_its_gpu() {
    let mut scrubber = Scrubber::default();
    let id = "a1b2c3d4e5f60718";
    let mut object = json!([
        { "uuid": format!("GPU-{id}") },
        { "uuid": format!("GPU-{id}.1") },
        { "uuid": "PCI-0000:03:00.0" },
    ]);
    scrubber.scrub_json(std::slice::from_mut(&mut object));
    let uuids: Vec<_> = object
        .as_array()
        .unwrap()
        .iter()
        .map(|gpu| &gpu["uuid"])
        .collect();
    assert_eq!(uuids, ["GPU-id-1", "GPU-id-1.1", "PCI-0000:03:00.0"]);
    assert_eq!(scrubber.assign_placeholder(NameKind::Id, id), "id-1");
    let text = format!("{id} and GPU-{id}.1 at PCI-0000:03:00.0");
    assert_eq!(
        scrubber.scrub_text(&text),
        "id-1 and GPU-id-1.1 at PCI-0000:03:00.0"
    );
}
