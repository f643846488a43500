//! Files that wake a sleeping card, and files without read permission: none of them is opened.

use std::{
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use fake_drm::{Card, CardFiles, FORBIDDEN_FILES, Tree, kfd::Package, products};
use serde_json::Value;

use crate::support::{Server, gpumon_command, health_states, stderr_text, wait_for_condition};

const INTERVAL_MS: u64 = 100;

/// A laptop with two switched-off cards of different vendors, and a program that has both open.
struct Laptop {
    tree: Tree,
    /// The cards, and whether each is by AMD.
    cards: [(CardFiles, bool); 2],
}

impl Laptop {
    fn new(change: impl Fn(Card) -> Card) -> Self {
        let tree = Tree::new();
        let (amd, intel) = ("0000:03:00.0", "0000:84:00.0");
        let cards = [
            (tree.add_card(0, &change(products::make_radeon(amd))), true),
            (
                tree.add_card(1, &change(products::make_arc_b580(intel))),
                false,
            ),
        ];
        tree.add_packages(&[Package::make_mi300x(amd, 1, 128)]);
        Self { tree, cards }
    }

    fn make_command(&self, arguments: &[&str]) -> Command {
        let mut command = gpumon_command(arguments);
        command
            .env("GPUMON_NVML_LIB", "/nowhere/libnvidia-ml.so.1")
            .env("GPUMON_CONTROL", self.tree.proc().join("control.sock"))
            .env("GPUMON_SYSFS", self.tree.sys());
        command
    }

    fn serve(&self) -> Server {
        let interval = INTERVAL_MS.to_string();
        let arguments = ["serve", "--listen", "127.0.0.1:0"];
        let arguments = [&arguments[..], &["--interval-ms", &interval]].concat();
        Server::start(self.make_command(&arguments))
    }
}

fn latest_sample(server: &Server) -> Value {
    server.get("/api/v1/snapshot").json()["sample"].clone()
}

fn wait_for_state(server: &Server, state: &str) {
    wait_for_condition(&format!("both cards are {state}"), || {
        let sample = latest_sample(server);
        sample.is_object() && health_states(&sample) == [state; 2]
    });
}

#[test]
fn files_that_wake_sleeping_cards_stay_closed() {
    let laptop = Laptop::new(|card| card);
    laptop
        .cards
        .iter()
        .for_each(|(card, _)| card.suspend_card());
    let watched = laptop
        .cards
        .each_ref()
        .map(|(card, is_amd)| (card.record_opened_files(), *is_amd));
    let check = |when: &str| {
        for (opened, is_amd) in &watched {
            let gated = opened.take_waking_files(*is_amd);
            assert!(gated.is_empty(), "{when}: {gated:?}");
        }
    };
    for command in [&["--json"][..], &["info"], &["doctor"], &["--csv"]] {
        let output = laptop.make_command(command).output().unwrap();
        check(&format!("{command:?}: {}", stderr_text(&output)));
    }
    let server = laptop.serve();
    wait_for_state(&server, "asleep");
    sleep(Duration::from_millis(10 * INTERVAL_MS));
    check("a server that finds them asleep");
    let answer = server.get("/api/v1/snapshot").json();
    let gpus = &answer["inventory"]["gpus"];
    assert_eq!(
        gpus[0]["uuid"], "GPU-aaaaaaa000003000",
        "a sleeping GPU keeps its UUID"
    );
    assert_eq!(gpus[1]["pci_bus_id"], "00000000:84:00.0");
    // gpumon reads the files of the cards while they are on. This shows that the recorder would
    // notice such reads.
    laptop.cards.iter().for_each(|(card, _)| card.resume_card());
    wait_for_state(&server, "ok");
    for (opened, is_amd) in &watched {
        assert!(
            !opened.take_waking_files(*is_amd).is_empty(),
            "opened files were not recorded"
        );
    }
    laptop
        .cards
        .iter()
        .for_each(|(card, _)| card.suspend_card());
    wait_for_state(&server, "asleep");
    for (opened, _) in &watched {
        opened.take_opened_files();
    }
    sleep(Duration::from_millis(10 * INTERVAL_MS));
    check("a server that saw them fall asleep");
    assert_eq!(health_states(&latest_sample(&server)), ["asleep"; 2]);
}

#[test]
fn idle_card_is_read_after_two_suspend_delays() {
    const DELAY_MS: u64 = 1000;
    let idle = |card: Card| {
        card.with_files(&[
            ("gpu_busy_percent", "0"),
            ("power/control", "auto"),
            ("power/autosuspend_delay_ms", &DELAY_MS.to_string()),
            ("tile0/gt0/gtidle/idle_residency_ms", "1000"),
        ])
    };
    let laptop = Laptop::new(idle);
    let server = laptop.serve();
    wait_for_state(&server, "ok");
    let (card, _) = &laptop.cards[0];
    let opened = card.record_opened_files();
    let mut reads = Vec::new();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(9) {
        if opened.take_opened_files().contains("gpu_metrics") {
            reads.push(Instant::now());
        }
        sleep(Duration::from_millis(10));
    }
    assert!((2..=5).contains(&reads.len()), "{reads:?}");
    for pair in reads.windows(2) {
        let apart = pair[1] - pair[0];
        assert!(
            apart >= Duration::from_millis(2 * DELAY_MS - 200),
            "{apart:?}"
        );
    }
}

#[test]
fn forbidden_files_are_not_opened_on_any_card() {
    let extra = FORBIDDEN_FILES.map(|name| (name, "0"));
    let laptop = Laptop::new(|card| {
        card.with_files(&extra)
            .with_files(&[("power/control", "on")])
    });
    let watched = laptop
        .cards
        .each_ref()
        .map(|(card, _)| card.record_opened_files());
    let server = laptop.serve();
    wait_for_state(&server, "ok");
    for command in [&["--json"][..], &["info"], &["doctor"]] {
        laptop.make_command(command).output().unwrap();
    }
    // Details are first read after some seconds.
    sleep(Duration::from_secs(6));
    for opened in watched {
        let opened = opened.take_opened_files();
        assert!(opened.len() > 5, "{opened:?}");
        for name in FORBIDDEN_FILES {
            assert!(!opened.contains(name), "{name} was opened");
        }
    }
}
