//! Tests of the screen for a single process.

use super::*;

#[test]
fn process_screen_opens_before_proc_attributes_are_read() {
    let own = std::process::id();
    let (mut app, waiting) = build_app(1);
    let sample = app.model.sample.as_mut().unwrap();
    let mut process = testing::example_processes(1).remove(0);
    (process.pid, process.started_ms) =
        (own, Reading::Absent(gpumon_probe::model::Absence::Unknown));
    sample.gpus[0].processes = Reading::Now(vec![process]);
    press_key(&mut app, KeyCode::Down);
    press_key(&mut app, KeyCode::Enter);
    let first = draw_lines(&mut app, 120, 40).join("\n");
    assert!(
        first.contains(&format!("Process {own}: --bf16")) && first.contains("reading /proc"),
        "{first}"
    );
    let Input::Inspected(inspection) = waiting.recv_timeout(Duration::from_mins(1)).unwrap() else {
        panic!()
    };
    assert_eq!(app.apply_inspection(*inspection), NextStep::Draw);
    let then = draw_lines(&mut app, 120, 60).join("\n");
    for fact in ["host memory", "threads", "folder", "environment"] {
        assert!(then.contains(fact), "{fact}: {then}");
    }
    // After the process has left the GPU, its last known values remain visible.
    let mut sample = app.model.sample.clone().unwrap();
    sample.gpus[0].processes = Reading::Now(Vec::new());
    app.apply_update(Update::Record(Box::new(Record::Sample(sample))));
    assert!(
        draw_lines(&mut app, 120, 60)
            .join("\n")
            .contains("no longer on this GPU")
    );
    press_key(&mut app, KeyCode::Esc);
    assert!(app.dialog.is_none());
}

/// Opens the screen of a real local process. The samples attribute 8 GiB of GPU memory to it.
fn open_process_screen(app: &mut App, waiting: &mpsc::Receiver<Input>, pid: u32, key: char) {
    let facts =
        gpumon_probe::process_stat::ProcessStat::read(std::path::Path::new("/proc"), pid).unwrap();
    let mut process = testing::example_processes(1).remove(0);
    (process.pid, process.started_ms) = (pid, Reading::Now(facts.birth.started_ms.unwrap()));
    (process.memory_bytes, process.sm_percent) = (Reading::Now(8 << 30), Reading::Now(40.0));
    process.host_memory_bytes = Reading::Now(3 << 30);
    let mut sample = app.model.sample.clone().unwrap();
    sample.gpus[0].power.draw_watts = Reading::Now(400.0);
    sample.gpus[0].processes = Reading::Now(vec![
        process.clone(),
        Process {
            pid: 1,
            sm_percent: Reading::Now(10.0),
            ..process
        },
    ]);
    let usage = ProcessUsage {
        cpu_percent: Some(150.0),
        threads: 1,
    };
    for second in 1..=3 {
        sample.at_ms += 1000;
        app.apply_update(Update::Usage(Usage::from([(pid, usage)])));
        app.apply_update(Update::Record(Box::new(Record::Sample(sample.clone()))));
        if second == 1 {
            app.state.processes.selected = None;
            press_keys(app, "/");
            press_keys(app, &format!("pid:{pid}"));
            press_key(app, KeyCode::Enter);
            press_keys(app, &key.to_string());
        }
        let Input::Inspected(inspection) = waiting.recv_timeout(Duration::from_mins(1)).unwrap()
        else {
            panic!()
        };
        app.apply_inspection(*inspection);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn process_screen_shows_charts_and_masks_secrets() {
    let mut child = spawn_sleeper(&[("HF_TOKEN", "hf_secret"), ("PATH", "/bin"), ("ZONE", "a")]);
    let (mut app, waiting) = build_app(1);
    open_process_screen(&mut app, &waiting, child.0.id(), 'i');
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        let drawn = draw_lines(&mut app, width, height).join("\n");
        for part in [
            "150 %",
            "Host memory",
            "3.00 GiB",
            "Disk I/O",
            "SM ",
            "40 %",
            "8.00 GiB",
            "320 W",
            "esc back",
        ] {
            assert!(drawn.contains(part), "{part} at {width}x{height}: {drawn}");
        }
    }
    let drawn = draw_lines(&mut app, 120, 60);
    let rates = drawn.iter().find(|line| line.contains("Disk I/O")).unwrap();
    assert!(!rates.contains(" - "), "two looks make a rate: {rates}");
    let drawn = drawn.join("\n");
    assert!(
        drawn.contains("HF_TOKEN=********") && !drawn.contains("hf_secret"),
        "{drawn}"
    );
    press_keys(&mut app, "s");
    assert!(
        draw_lines(&mut app, 120, 60)
            .join("\n")
            .contains("HF_TOKEN=hf_secret")
    );
    // Other processes are tagged, but only the process whose screen is open receives the signal.
    // Afterwards, this screen is shown again.
    press_keys(&mut app, "T");
    let asked = draw_lines(&mut app, 120, 40).join("\n");
    assert!(
        asked.contains(&format!("Send SIGTERM to process {},", child.0.id())),
        "{asked}"
    );
    press_keys(&mut app, "n");
    assert!(
        draw_lines(&mut app, 120, 40)
            .join("\n")
            .contains("Disk I/O")
    );
    press_keys(&mut app, "Ky");
    child.0.wait().unwrap();
    app.tick(Instant::now());
    let drawn = draw_lines(&mut app, 120, 40).join("\n");
    assert!(
        drawn.contains("has ended") && drawn.contains("Disk I/O"),
        "{drawn}"
    );
    press_key(&mut app, KeyCode::Esc);
    assert!(app.dialog.is_none());
}

#[test]
fn paused_process_screen_is_not_refreshed() {
    let child = spawn_sleeper(&[]);
    let (mut app, waiting) = build_app(1);
    open_process_screen(&mut app, &waiting, child.0.id(), 'i');
    app.apply_action(Action::Pause);
    let sample = app.model.sample.clone().unwrap();
    app.apply_update(Update::Record(Box::new(Record::Sample(sample))));
    assert!(waiting.recv_timeout(Duration::from_millis(300)).is_err());
}

#[test]
fn environment_key_scrolls_to_environment() {
    let names: Vec<String> = (10..40).map(|number| format!("GPUMON_{number}")).collect();
    let child = spawn_sleeper(
        &names
            .iter()
            .map(|name| (name.as_str(), "1"))
            .collect::<Vec<_>>(),
    );
    let (mut app, waiting) = build_app(1);
    open_process_screen(&mut app, &waiting, child.0.id(), 'e');
    let drawn = draw_lines(&mut app, 80, 24);
    let below_charts = &drawn[2 + (24 - 3) * 2 / 5];
    assert!(below_charts.starts_with("environment   "), "{drawn:#?}");
}
