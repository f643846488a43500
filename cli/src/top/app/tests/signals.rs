//! Tests of signals: the confirmation, the recipients, and the result.

use super::*;

#[test]
fn confirmed_signal_reaches_only_selected_process() {
    // If the tests run in the background, SIGINT may be ignored. A child process would inherit this
    // setting and ignore SIGINT too.
    let mut child = std::process::Command::new("env")
        .args(["--default-signal=INT", "sleep", "600"])
        .spawn()
        .unwrap();
    let facts =
        gpumon_probe::process_stat::ProcessStat::read(std::path::Path::new("/proc"), child.id())
            .unwrap();
    let (mut app, _waiting) = build_app(1);
    let sample = app.model.sample.as_mut().unwrap();
    let mut process = testing::example_processes(1).remove(0);
    (process.pid, process.started_ms) = (child.id(), Reading::Now(facts.birth.started_ms.unwrap()));
    sample.gpus[0].processes = Reading::Now(vec![process]);
    press_keys(&mut app, "T");
    assert!(last_line(&mut app).contains("select a process first"));
    press_key(&mut app, KeyCode::Down);
    press_keys(&mut app, "T");
    let asked = draw_lines(&mut app, 120, 40).join("\n");
    assert!(
        asked.contains(&format!("Send SIGTERM to process {}, ", child.id()))
            && asked.contains("of ana?"),
        "{asked}"
    );
    press_key(&mut app, KeyCode::Enter);
    press_key(&mut app, KeyCode::Esc);
    assert!(
        app.dialog.is_none() && child.try_wait().unwrap().is_none(),
        "only y sends"
    );
    press_keys(&mut app, "Ti");
    assert!(
        draw_lines(&mut app, 120, 40)
            .join("\n")
            .contains("Send SIGINT")
    );
    press_keys(&mut app, "y");
    assert!(last_line(&mut app).contains("SIGINT was sent to"));
    child.wait().unwrap();
    assert_eq!(app.tick(Instant::now()), NextStep::Draw);
    assert!(last_line(&mut app).contains("has ended"));
    press_keys(&mut app, "T");
    assert!(app.dialog.is_none() && last_line(&mut app).contains("has ended: no signal is sent"));
}

#[test]
fn process_of_other_namespace_is_not_considered_ended() {
    for (origin, started_ms, says) in [
        (Origin::Driver, None, "runs in another PID namespace"),
        (
            Origin::Server,
            Some(1),
            "has ended, or runs in another PID namespace",
        ),
        (Origin::Driver, Some(1), "has ended: no signal"),
    ] {
        let (mut app, waiting) = build_app(1);
        app.model.origin = origin;
        let mut process = testing::example_processes(1).remove(0);
        process.pid = (1 << 22) + 1;
        process.started_ms = started_ms.map_or(
            Reading::Absent(gpumon_probe::model::Absence::Unknown),
            Reading::Now,
        );
        app.model.sample.as_mut().unwrap().gpus[0].processes = Reading::Now(vec![process]);
        press_key(&mut app, KeyCode::Down);
        press_keys(&mut app, "T");
        assert!(
            app.dialog.is_none() && last_line(&mut app).contains(says),
            "{}",
            last_line(&mut app)
        );
        press_key(&mut app, KeyCode::Enter);
        let Input::Inspected(inspection) = waiting.recv_timeout(Duration::from_mins(1)).unwrap()
        else {
            panic!()
        };
        let said = inspection.found.unwrap_err();
        assert!(
            said.contains(says.trim_end_matches(": no signal")),
            "{said}"
        );
    }
}

#[test]
fn signal_dialog_shows_notebook_path_gpus_and_memory() {
    let mut child = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .unwrap();
    let facts =
        gpumon_probe::process_stat::ProcessStat::read(std::path::Path::new("/proc"), child.id())
            .unwrap();
    let (mut app, _waiting) = build_app(2);
    let mut process = crate::table::examples::example_processes().remove(1);
    (process.pid, process.started_ms) = (child.id(), Reading::Now(facts.birth.started_ms.unwrap()));
    process.memory_bytes = Reading::Now(3 << 30);
    for gpu in &mut app.model.sample.as_mut().unwrap().gpus {
        gpu.processes = Reading::Now(vec![process.clone()]);
    }
    press_key(&mut app, KeyCode::Down);
    press_keys(&mut app, "T");
    let asked = draw_lines(&mut app, 120, 40).join("\n");
    assert!(asked.contains("GPU 0, 1, 6.00 GiB, since "), "{asked}");
    assert!(
        asked.contains("/home/ana/work/train.ipynb (python3)"),
        "{asked}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn each_signal_key_waits_for_confirmation() {
    let mut child = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .unwrap();
    let facts =
        gpumon_probe::process_stat::ProcessStat::read(std::path::Path::new("/proc"), child.id())
            .unwrap();
    let (mut app, _waiting) = build_app(1);
    let mut process = testing::example_processes(1).remove(0);
    (process.pid, process.started_ms) = (child.id(), Reading::Now(facts.birth.started_ms.unwrap()));
    app.model.sample.as_mut().unwrap().gpus[0].processes = Reading::Now(vec![process]);
    press_key(&mut app, KeyCode::Down);
    for (key, signal) in [("T", "SIGTERM"), ("I", "SIGINT"), ("K", "SIGKILL")] {
        press_keys(&mut app, key);
        assert!(
            draw_lines(&mut app, 120, 40)
                .join("\n")
                .contains(&format!("Send {signal} to process")),
            "{key}"
        );
        press_keys(&mut app, "n");
        assert!(app.dialog.is_none() && child.try_wait().unwrap().is_none());
    }
    press_keys(&mut app, "Ky");
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&child.wait().unwrap()),
        Some(9)
    );
}

#[test]
fn simulated_and_recorded_processes_are_not_signaled() {
    for (origin, simulated, why) in [
        (Origin::Driver, true, "simulated"),
        (Origin::Recording, false, "recording"),
    ] {
        let (mut app, _waiting) = build_app(2);
        app.model.origin = origin;
        if simulated {
            app.model.inventory.as_mut().unwrap().platform.is_simulated = true;
        }
        press_key(&mut app, KeyCode::Down);
        press_keys(&mut app, "T");
        assert!(
            app.dialog.is_none() && last_line(&mut app).contains(why),
            "{}",
            last_line(&mut app)
        );
    }
}

#[test]
fn one_confirmation_signals_each_tagged_process_once() {
    let mut children: Vec<_> = (0..3)
        .map(|_| {
            std::process::Command::new("sleep")
                .arg("600")
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    let (mut app, _waiting) = build_app(2);
    let mut template = testing::example_processes(3);
    for (process, child) in template.iter_mut().zip(&children) {
        let facts = gpumon_probe::process_stat::ProcessStat::read(
            std::path::Path::new("/proc"),
            child.id(),
        )
        .unwrap();
        (process.pid, process.started_ms) =
            (child.id(), Reading::Now(facts.birth.started_ms.unwrap()));
    }
    let sample = app.model.sample.as_mut().unwrap();
    // The first process uses both GPUs.
    sample.gpus[0].processes = Reading::Now(template.clone());
    sample.gpus[1].processes = Reading::Now(template[..1].to_vec());
    app.state.processes.sort = Column::Pid;
    app.state.processes.descending = false;
    press_key(&mut app, KeyCode::Home);
    press_keys(&mut app, "  ");
    let tagged = |app: &mut App| {
        draw_lines(app, 120, 40)
            .iter()
            .filter(|line| line.starts_with("* "))
            .count()
    };
    assert_eq!(
        tagged(&mut app),
        0,
        "the second row is the first process on the other GPU"
    );
    press_keys(&mut app, "  ");
    assert_eq!(tagged(&mut app), 2);
    press_key(&mut app, KeyCode::Home);
    press_keys(&mut app, " ");
    assert_eq!(tagged(&mut app), 4);
    // Tagged processes stay tagged while a filter hides them, and the dialog lists them.
    press_keys(&mut app, "f");
    press_keys(&mut app, "nobody");
    press_key(&mut app, KeyCode::Enter);
    press_keys(&mut app, "U");
    assert!(app.state.processes.tags.is_empty());
    press_key(&mut app, KeyCode::Esc);
    press_key(&mut app, KeyCode::Home);
    press_keys(&mut app, " ");
    press_key(&mut app, KeyCode::End);
    press_keys(&mut app, " f");
    press_keys(&mut app, "nobody");
    press_key(&mut app, KeyCode::Enter);
    press_keys(&mut app, "T");
    let asked = draw_lines(&mut app, 120, 40).join("\n");
    assert!(
        asked.contains("Send SIGTERM to 2 processes?") && asked.contains("GPU 0, 1, "),
        "{asked}"
    );
    for (place, child) in children.iter().enumerate() {
        assert_eq!(
            asked.contains(&format!("({})", child.id())),
            place != 1,
            "{asked}"
        );
    }
    press_keys(&mut app, "y");
    assert!(
        last_line(&mut app).contains("SIGTERM was sent to 2 processes"),
        "{}",
        last_line(&mut app)
    );
    for child in [0, 2] {
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&children[child].wait().unwrap()),
            Some(15)
        );
        app.tick(Instant::now());
    }
    assert!(
        children[1].try_wait().unwrap().is_none(),
        "what is not tagged gets nothing"
    );
    assert!(
        last_line(&mut app).contains("2 processes have ended"),
        "{}",
        last_line(&mut app)
    );
    children[1].kill().unwrap();
    children[1].wait().unwrap();
}

#[test]
fn ended_and_running_processes_are_reported_together() {
    let shell = |script: &str| {
        Sleeper(
            std::process::Command::new("sh")
                .args(["-c", script])
                .spawn()
                .unwrap(),
        )
    };
    let mut children = [
        "exec sleep 600",
        "trap '' TERM; while :; do sleep 0.1; done",
    ]
    .map(shell);
    let (mut app, _waiting) = build_app(1);
    for (child, name) in children.iter().zip(["first", "second"]) {
        let facts = gpumon_probe::process_stat::ProcessStat::read(
            std::path::Path::new("/proc"),
            child.0.id(),
        )
        .unwrap();
        let mut process = testing::example_processes(1).remove(0);
        (process.pid, process.started_ms) =
            (child.0.id(), Reading::Now(facts.birth.started_ms.unwrap()));
        process.name = Reading::Now(name.to_owned());
        app.model.sample.as_mut().unwrap().gpus[0].processes = Reading::Now(vec![process]);
        press_key(&mut app, KeyCode::Home);
        // The shell needs some time to set its signal trap.
        std::thread::sleep(Duration::from_millis(300));
        press_keys(&mut app, "Ty");
    }
    children[0].0.wait().unwrap();
    app.tick(Instant::now() + Duration::from_secs(11));
    let reported = last_line(&mut app);
    assert!(
        reported.contains("still running: second (") && reported.contains("; first ("),
        "{reported}"
    );
    assert!(reported.contains(") has ended"), "{reported}");
}

#[test]
fn process_stays_tagged_until_it_ends() {
    let (mut app, _waiting) = build_app(1);
    press_key(&mut app, KeyCode::Home);
    press_keys(&mut app, "  ");
    assert_eq!(app.state.processes.tags.len(), 2);
    let keys = draw_lines(&mut app, 80, 24).pop().unwrap();
    assert!(
        keys.starts_with("q quit  ? help  space tag  enter details  T signal  "),
        "{keys}"
    );
    assert!(
        draw_lines(&mut app, 120, 40)
            .join("\n")
            .contains("2 tagged")
    );
    let mut sample = app.model.sample.clone().unwrap();
    let Reading::Now(processes) = &mut sample.gpus[0].processes else {
        panic!()
    };
    // The first process ends, and a new process reuses its PID.
    processes[0].started_ms = Reading::Now(1_800_000_000_000);
    app.apply_update(Update::Record(Box::new(Record::Sample(sample))));
    assert_eq!(app.state.processes.tags.len(), 1);
    press_key(&mut app, KeyCode::Esc);
    assert!(app.state.processes.tags.is_empty());
    app.state.processes.selected = None;
    press_keys(&mut app, " ");
    assert!(app.model.paused, "with nothing selected");
    press_keys(&mut app, "p");
    assert!(!app.model.paused);
}
