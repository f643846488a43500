//! Tests of whole tables: comparisons with snapshots at several widths, and rules that apply at any
//! width. `INSTA_UPDATE=always` rewrites the snapshots.

use clap::ValueEnum;
use gpumon_probe::model::{
    Absence, Allocation, Condition, ConditionKind, GpuSample, Health, MigDevice, MigInstance,
    MigSample, Reading, Severity, ThrottleReason,
};
use gpumon_server::frame::{GpuHistory, History};
use unicode_width::UnicodeWidthStr;

use super::{
    examples::{
        GIB, NOW_MS, example_inventory, example_process, example_processes, example_sample,
    },
    *,
};
use crate::{
    describe::LoadLevel,
    terminal::{
        line::{self, strip_styles},
        screen::Glyphs,
    },
};

const WIDTHS: [usize; 4] = [60, 80, 120, 200];

/// The data of a table to draw.
struct Scene {
    inventory: Inventory,
    sample: Sample,
    past: UtilizationHistory,
    is_one_shot: bool,
}

impl Scene {
    fn new(count: u32) -> Self {
        let (inventory, sample) = (
            example_inventory(count, "NVIDIA H200"),
            example_sample(count),
        );
        Self {
            inventory,
            sample,
            past: UtilizationHistory::default(),
            is_one_shot: true,
        }
    }

    fn with_change(count: u32, change: impl FnOnce(&mut Self)) -> Self {
        let mut scene = Self::new(count);
        change(&mut scene);
        scene
    }

    fn view(&self) -> View<'_> {
        View {
            inventory: &self.inventory,
            sample: &self.sample,
            past: &self.past,
            is_one_shot: self.is_one_shot,
            thresholds: Thresholds::default(),
            notice: None,
            with_total: false,
            listed: None,
        }
    }

    /// Adds a minute of history in which the utilization rises. Also adds a condition to the first
    /// GPU: its memory will be full soon.
    fn add_history(&mut self) {
        let memory = &self.sample.gpus[0].memory;
        let left =
            memory.total_bytes.value().unwrap_or(&0) - memory.used_bytes.value().unwrap_or(&0);
        let kind = ConditionKind::MemoryFilling {
            left_ms: left / GIB * 1000,
            bytes_per_second: GIB as f64,
            growing: Vec::new(),
        };
        let text = "Memory full in about a minute.".to_owned();
        self.sample.gpus[0].conditions.push(Condition {
            since_ms: NOW_MS,
            severity: Severity::Critical,
            text,
            kind,
        });
        let seconds = || 0..60_u16;
        let times_ms = seconds()
            .map(|second| NOW_MS - 59_000 + u64::from(second) * 1000)
            .collect();
        let gpus = self.sample.gpus.iter().map(|gpu| {
            let busy = seconds()
                .map(|second| (second != 30).then_some(f32::from(second) * 100.0 / 59.0))
                .collect();
            let metrics = [(UTILIZATION_METRIC.to_owned(), busy)].into();
            GpuHistory {
                uuid: gpu.uuid.clone().unwrap_or_default(),
                metrics,
                holders: Vec::new(),
            }
        });
        self.past = UtilizationHistory::from_history(&History {
            times_ms,
            gpus: gpus.collect(),
            ..History::default()
        });
        self.is_one_shot = false;
    }

    fn render_table(&self, layout: Layout) -> String {
        render(&self.view(), layout, None)
    }

    fn render_piped(&self) -> String {
        self.render_table(PIPE)
    }

    /// Compares the table at all tested widths with the snapshot `name`.
    fn compare_with_snapshot(&self, name: &str) {
        let picture = |width: usize| {
            let ruler = format!("{width:=<width$}\n");
            ruler + &strip_styles(&self.render_table(make_terminal_layout(width)))
        };
        assert_matches_snapshot(name, &WIDTHS.map(picture).join("\n"));
    }
}

const PIPE: Layout = Layout {
    width: None,
    height: None,
    glyphs: Glyphs::Ascii,
};

fn make_terminal_layout(width: usize) -> Layout {
    Layout {
        width: Some(width),
        height: None,
        glyphs: Glyphs::Braille,
    }
}

#[track_caller]
fn assert_matches_snapshot(name: &str, drawn: &str) {
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, drawn);
    });
}

fn make_condition(severity: Severity, text: &str, kind: ConditionKind) -> Condition {
    Condition {
        since_ms: NOW_MS - 1_560_000,
        severity,
        text: text.to_owned(),
        kind,
    }
}

fn make_unreadable_gpu(index: u32, health: Health, reason: &Absence) -> GpuSample {
    GpuSample::new_absent(index, Some(format!("GPU-{index}")), NOW_MS, health, reason)
}

/// Returns a scene with eight GPUs, each with a different problem.
fn make_scene_with_problems() -> Scene {
    Scene::with_change(8, |scene| {
        scene.add_history();
        let since_ms = NOW_MS - 720_000;
        let gpus = &mut scene.sample.gpus;
        gpus[0].processes = Reading::Now(example_processes());
        gpus[1] = make_unreadable_gpu(1, Health::Lost { since_ms }, &Absence::GpuLost);
        gpus[2].health = Health::Hung { since_ms };
        gpus[3] = make_unreadable_gpu(3, Health::Asleep { since_ms }, &Absence::Asleep);
        gpus[4].conditions = vec![make_condition(
            Severity::Notice,
            "Clocks reduced: power-capped at 700 W.",
            ConditionKind::Throttled {
                reasons: vec![ThrottleReason::SwPowerCap],
                limit_watts: None,
                gpu_celsius: None,
            },
        )];
        gpus[5].conditions = vec![make_condition(
            Severity::Critical,
            "Xid 79: The GPU has fallen off the bus. Reboot the machine.",
            ConditionKind::Xid {
                pid: None,
                code: 79,
                count: 1,
                last_ms: since_ms,
            },
        )];
        gpus[6].utilization.gpu_percent = Reading::Now(0.0);
        gpus[6].conditions = vec![make_condition(
            Severity::Notice,
            "explore.ipynb (ana) idle, holding 30.1 GiB for 26 minutes.",
            ConditionKind::HeldIdle {
                bytes: 30 * GIB,
                idle_ms: 1_560_000,
                pids: vec![7],
            },
        )];
        gpus[7].memory.used_bytes = Reading::Now(140 * GIB);
        gpus[7].memory.free_bytes = Reading::Now(GIB);
        gpus[7].conditions = vec![make_condition(
            Severity::Warning,
            "Memory nearly full: 1.0 GiB of 141.0 GiB free. The next allocation may fail.",
            ConditionKind::MemoryNearlyFull {
                free_bytes: GIB,
                total_bytes: 141 * GIB,
            },
        )];
        gpus[7].processes = Reading::Absent(Absence::NoPermission);
    })
}

#[test]
fn table_of_one_gpu_matches_snapshot() {
    Scene::with_change(1, |scene| {
        scene.sample.gpus[0].processes = Reading::Now(example_processes());
    })
    .compare_with_snapshot("one");
}

#[test]
fn table_of_two_gpus_with_history_matches_snapshot() {
    let scene = Scene::with_change(2, |scene| {
        scene.inventory.gpus[1].name =
            Reading::Now("NVIDIA GeForce RTX 4090 Laptop GPU".to_owned());
        scene.sample.gpus[0].memory.used_bytes = Reading::Now(100 * GIB);
        scene.add_history();
        let laptop = &mut scene.sample.gpus[1];
        laptop.memory.used_bytes = Reading::Now(3 * GIB);
        laptop.memory.total_bytes = Reading::Now(16 * GIB);
        laptop.power.limit_watts = Reading::Absent(Absence::NotSupported);
        laptop.fan_percent = Reading::Now(30.0);
        laptop.processes = Reading::Now(example_processes());
    });
    scene.compare_with_snapshot("two");
}

#[test]
fn table_with_eight_problems_matches_snapshot() {
    make_scene_with_problems().compare_with_snapshot("troubles");
}

#[test]
fn mig_gpu_shows_devices_and_their_users() {
    let scene = Scene::with_change(2, |scene| {
        let unknown = || Reading::Absent(Absence::NotSupported);
        let part = |index, gpu_instance| MigDevice {
            index,
            uuid: format!("MIG-{index}"),
            instance: MigInstance {
                gpu_instance,
                compute_instance: 0,
            },
            profile: Reading::Now(if index == 0 { "3g.71gb" } else { "1g.18gb" }.to_owned()),
            multiprocessors: unknown(),
            copy_engines: unknown(),
            decoders: unknown(),
            encoders: unknown(),
        };
        let parts = vec![part(0, 2), part(1, 7)];
        let gpu = &mut scene.sample.gpus[1];
        gpu.utilization.gpu_percent = Reading::Absent(Absence::NotSupported);
        let shown = parts.iter().zip([71, 18]).map(|(part, gib)| {
            let mut memory = gpu.memory.clone();
            memory.total_bytes = Reading::Now(gib * GIB);
            memory.used_bytes = Reading::Now(9 * GIB);
            let activity = Reading::Absent(Absence::WarmingUp);
            MigSample {
                uuid: part.uuid.clone(),
                instance: part.instance,
                memory,
                activity,
                allocated_to: Vec::new(),
            }
        });
        gpu.mig_devices = Reading::Now(shown.collect());
        let mut inside = example_process(6001, "ana", 8.9, "python3 sweep.py");
        inside.mig = Some(parts[1].instance);
        let mut other = example_process(6002, "bob", 8.5, "python3 eval.py");
        other.mig = Some(parts[0].instance);
        gpu.processes = Reading::Now(vec![inside, other]);
        scene.inventory.gpus[1].mig_devices = parts;
    });
    scene.compare_with_snapshot("mig");
}

#[test]
fn short_view_resembles_gpustat() {
    let mut scene = make_scene_with_problems();
    scene.inventory.gpus[6].name = Reading::Now("NVIDIA RTX 6000 Ada Generation".to_owned());
    let short = |parts| {
        strip_styles(&render_short(
            &scene.view(),
            make_terminal_layout(100),
            parts,
        ))
    };
    assert_matches_snapshot("short", &short(&[]));
    assert_matches_snapshot("short_all", &short(ShortPart::value_variants()));
}

#[test]
fn totals_line_counts_responding_gpus_and_missing_readings() {
    let scene = |change: fn(&mut Scene)| {
        let scene = Scene::with_change(4, change);
        let view = View {
            with_total: true,
            ..scene.view()
        };
        let totals = [
            render(&view, make_terminal_layout(100), None),
            render_short(&view, make_terminal_layout(100), &[]),
        ]
        .map(|drawn| {
            let drawn = strip_styles(&drawn);
            drawn
                .lines()
                .find(|line| line.starts_with("Total"))
                .unwrap()
                .to_owned()
        });
        assert_eq!(totals[0], totals[1]);
        totals[0].clone()
    };
    let all = |scene: &mut Scene| {
        for gpu in &mut scene.sample.gpus {
            gpu.power.energy_joules_total = Reading::Now(3.6e6);
        }
    };
    assert_eq!(
        scene(all),
        "Total, 4 GPUs: 32 % mean, 162.5/564 GiB, 1138/2800 W, 4.00 kWh since driver load"
    );
    let few =
        |scene: &mut Scene| scene.sample.gpus[3].power.energy_joules_total = Reading::Now(3_600.0);
    assert!(scene(few).ends_with(", 1.00 Wh since driver load (1 of 4)"));
    let some = |scene: &mut Scene| {
        scene.sample.gpus[1].health = Health::Hung { since_ms: 1 };
        scene.sample.gpus[0].power.draw_watts = Reading::Absent(Absence::NotSupported);
        scene.sample.gpus[2].power.limit_watts = Reading::Absent(Absence::NotSupported);
    };
    assert_eq!(
        scene(some),
        "Total, 3 of 4 GPUs: 34 % mean, 130.0/423 GiB, 716 W (2 of 3)"
    );
    let none = |scene: &mut Scene| {
        scene
            .sample
            .gpus
            .iter_mut()
            .for_each(|gpu| gpu.health = Health::Lost { since_ms: 1 });
    };
    assert_eq!(scene(none), "Total, 0 of 4 GPUs");
}

#[test]
fn lines_fit_terminal_and_truncation_is_marked() {
    let mut scene = make_scene_with_problems();
    scene.inventory.hostname = "訓練.例え".repeat(10);
    scene.inventory.gpus[2].name = Reading::Now("🦀 GPU \u{1b}[31m".repeat(4));
    let whole = scene.render_piped();
    for width in (10..=40).chain([59, 60, 61, 72, 80, 81, 100, 119, 132, 160, 200, 250, 300]) {
        for glyphs in [Glyphs::Ascii, Glyphs::Braille] {
            let layout = Layout {
                width: Some(width),
                height: None,
                glyphs,
            };
            let drawn = strip_styles(&scene.render_table(layout));
            for line in drawn.lines() {
                assert!(
                    line.width() <= width,
                    "{} columns of {width}: {line}",
                    line.width()
                );
            }
            let command = "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 32768 \
                           --dtype bfloat16";
            let sign = glyphs.ellipsis();
            let is_signed = || {
                drawn
                    .lines()
                    .any(|line| line.contains("5120") && line.contains(sign))
            };
            assert!(
                drawn.contains(command) || width < 40 || is_signed(),
                "{width}: {drawn}"
            );
            assert!(glyphs == Glyphs::Braille || drawn.is_ascii(), "{drawn}");
        }
    }
    assert!(whole.contains("--dtype bfloat16 (slurm 88123)"), "{whole}");
}

#[test]
fn important_readings_fit_sixty_columns() {
    let mut scene = make_scene_with_problems();
    let gpu = &mut scene.sample.gpus[0];
    gpu.utilization.gpu_percent = Reading::Now(42.0);
    scene.sample.gpus[4].fan_percent = Reading::Now(31.0);
    let at = |width| strip_styles(&scene.render_table(make_terminal_layout(width)));
    for expected in [
        "42 %",
        "16.2/141 GiB",
        "35 °C",
        "174/700 W",
        "GPU lost",
        "power-capped",
        "Xid 79",
        "4312",
        "ana",
    ] {
        assert!(at(60).contains(expected), "{expected}: {}", at(60));
    }
    for expected in [
        "1980 MHz",
        "memory 75 °C",
        "fan  31 %",
        "idle for 26 min, holding memory",
        "3f2a3f2a3f2a",
        "2h14",
    ] {
        assert!(at(200).contains(expected), "{expected}: {}", at(200));
    }
}

#[test]
fn decimal_points_and_units_are_aligned() {
    let scene = Scene::with_change(8, |scene| {
        scene.sample.gpus[0].memory.used_bytes = Reading::Now(GIB / 2);
        scene.sample.gpus[0].utilization.gpu_percent = Reading::Now(5.0);
    });
    let drawn = strip_styles(&scene.render_table(make_terminal_layout(100)));
    let lines: Vec<&str> = drawn.lines().skip(2).take(8).collect();
    for mark in [" %", ".", "/141 GiB", "°C", "/700 W"] {
        let column = |line: &str| line.split(mark).next().unwrap().width();
        assert!(
            lines.iter().all(|line| column(line) == column(lines[0])),
            "{mark}: {drawn}"
        );
    }
}

#[test]
fn lost_gpu_shows_dashes_instead_of_zeros() {
    let scene = Scene::with_change(3, |scene| {
        scene.sample.gpus[1] =
            make_unreadable_gpu(1, Health::Lost { since_ms: NOW_MS }, &Absence::GpuLost);
    });
    let text = scene.render_piped();
    let line = strip_styles(&text)
        .lines()
        .find(|line| line.trim_start().starts_with("1 H"))
        .unwrap()
        .to_owned();
    let readings = line.replace("H200", "");
    assert!(
        readings.contains("GPU lost") && readings.contains(" - ") && !readings.contains('0'),
        "{line}"
    );
    assert!(
        strip_styles(&text)
            .lines()
            .any(|line| line.trim_start().starts_with("2 H")),
        "{text}"
    );
}

#[test]
fn conditions_appear_once_with_and_without_server() {
    let mut scene = Scene::with_change(1, |scene| {
        let gpu = &mut scene.sample.gpus[0];
        gpu.throttle_reasons = Reading::Now(vec![
            ThrottleReason::HwSlowdown,
            ThrottleReason::HwThermalSlowdown,
        ]);
        gpu.memory.free_bytes = Reading::Now(GIB);
    });
    let once = strip_styles(&scene.render_piped());
    assert!(
        once.contains("hardware thermal slowdown") && once.contains("nearly full: 1.00 GiB left"),
        "{once}"
    );
    assert!(
        !once.contains("hardware slowdown"),
        "the other reason says more: {once}"
    );
    scene.is_one_shot = false;
    let watched = strip_styles(&scene.render_piped());
    assert!(
        !watched.contains("slowdown") && !watched.contains("nearly full"),
        "{watched}"
    );
}

#[test]
fn only_urgent_phrases_are_red() {
    let red = line::ALARM.render().to_string();
    // Bars that show a heavy load are also red, so they are excluded.
    let is_red = |scene: &Scene| {
        scene
            .render_table(make_terminal_layout(120))
            .split(&red)
            .skip(1)
            .any(|red| !red.starts_with(['━', '#']))
    };
    let with = |kind: ConditionKind, severity| {
        Scene::with_change(1, |scene| {
            scene.sample.gpus[0].conditions =
                vec![make_condition(severity, "It is so.", kind.clone())];
            scene.is_one_shot = false;
        })
    };
    assert!(!is_red(&Scene::new(8)));
    assert!(!is_red(&with(
        ConditionKind::PageRetirementPending,
        Severity::Warning
    )));
    assert!(is_red(&with(
        ConditionKind::EccUncorrected { count: 1 },
        Severity::Critical
    )));
    assert!(is_red(&Scene::with_change(1, |scene| {
        scene.sample.gpus[0].memory.used_bytes = Reading::Now(100 * GIB);
        scene.add_history();
    })));
}

#[test]
fn table_uses_only_terminal_colors() {
    let drawn = make_scene_with_problems().render_table(make_terminal_layout(200))
        + &render_short(
            &make_scene_with_problems().view(),
            make_terminal_layout(200),
            &[],
        );
    // No text may be black or white, because the terminal's background may have the same color.
    // Background colors and colors of the 256-color palette are also not allowed, because they do
    // not follow the terminal's theme.
    let backgrounds = (40..=48).map(|code| code.to_string());
    for code in ["30m", "37m", "90m", "97m", "38;"]
        .map(str::to_owned)
        .into_iter()
        .chain(backgrounds)
    {
        assert!(!drawn.contains(&format!("\u{1b}[{code}")), "{code:?}");
    }
}

#[test]
fn simulated_values_are_labeled_in_every_view() {
    let scene = Scene::with_change(2, |scene| {
        scene.inventory.platform.is_simulated = true;
    });
    assert!(
        scene
            .render_piped()
            .lines()
            .next()
            .unwrap()
            .contains("simulated")
    );
    assert!(
        render_short(&scene.view(), PIPE, &[])
            .lines()
            .next()
            .unwrap()
            .contains("simulated")
    );
}

#[test]
fn untrusted_text_has_no_control_characters() {
    let scene = Scene::with_change(1, |scene| {
        let evil = "evil \u{1b}[2J\u{7} \n more\u{202e}".to_owned();
        let mut process = example_process(7, &evil, 1.0, &evil);
        process.name = Reading::Now(evil.clone());
        scene.inventory.hostname.clone_from(&evil);
        scene.inventory.gpus[0].name = Reading::Now(evil.clone());
        let kind = ConditionKind::PageRetirementPending;
        scene.sample.gpus[0].conditions = vec![make_condition(Severity::Notice, &evil, kind)];
        scene.sample.gpus[0].processes = Reading::Now(vec![process]);
    });
    for text in [
        scene.render_table(make_terminal_layout(200)),
        scene.render_piped(),
        render_short(&scene.view(), make_terminal_layout(200), &[]),
    ] {
        assert!(
            !text.contains("\u{1b}[2J") && !text.contains(['\u{7}', '\u{202e}']),
            "{text:?}"
        );
        assert!(strip_styles(&text).contains("evil  [2J"), "{text:?}");
    }
}

#[test]
fn short_window_shows_number_of_omitted_rows() {
    let scene = make_scene_with_problems();
    let whole = strip_styles(&scene.render_table(make_terminal_layout(100)))
        .lines()
        .count();
    let drawn = strip_styles(&scene.render_table(Layout {
        height: Some(10),
        ..make_terminal_layout(100)
    }));
    assert_eq!(drawn.lines().count(), 10);
    assert!(
        drawn.ends_with(&format!("{} more rows: enlarge the window\n", whole - 9)),
        "{drawn}"
    );
    let fits = strip_styles(&scene.render_table(Layout {
        height: Some(whole),
        ..make_terminal_layout(100)
    }));
    assert!(!fits.contains("more row"), "{fits}");
}

#[test]
fn process_with_most_memory_comes_first() {
    let scene = Scene::with_change(1, |scene| {
        let mut unknown = example_process(1, "root", 0.0, "Xorg");
        unknown.memory_bytes = Reading::Absent(Absence::Unknown);
        let mut all = example_processes();
        all.push(unknown);
        scene.sample.gpus[0].processes = Reading::Now(all);
    });
    let drawn = strip_styles(&scene.render_piped());
    let pids: Vec<&str> = drawn
        .lines()
        .skip(5)
        .map(|line| line.split_whitespace().nth(1).unwrap())
        .collect();
    assert_eq!(pids, ["4312", "5120", "777", "1"], "{drawn}");
}

#[test]
fn notebooks_with_same_name_are_distinguished_in_table() {
    let scene = Scene::with_change(1, |scene| {
        let notebooks = [
            "/home/ana/first/train.ipynb",
            "/home/ana/second/train.ipynb",
        ]
        .map(|path| {
            let is_notebook = |process: &gpumon_probe::model::Process| {
                process
                    .owner
                    .value()
                    .is_some_and(|owner| owner.notebook.is_some())
            };
            let mut process = example_processes().into_iter().find(is_notebook).unwrap();
            let Reading::Now(owner) = &mut process.owner else {
                panic!()
            };
            owner.notebook.as_mut().unwrap().path = Reading::Now(path.to_owned());
            process
        });
        scene.sample.gpus[0].processes = Reading::Now(notebooks.into());
    });
    let drawn = strip_styles(&scene.render_piped());
    assert!(
        drawn.contains(" first/train.ipynb (") && drawn.contains(" second/train.ipynb ("),
        "{drawn}"
    );
}

#[test]
fn list_ends_with_number_of_omitted_processes() {
    let scene = Scene::with_change(2, |scene| {
        scene.sample.gpus[0].processes = Reading::Now(example_processes());
        scene.sample.gpus[0].processes_omitted = 1;
        scene.sample.gpus[1].processes_omitted = 976;
    });
    let drawn = strip_styles(&scene.render_piped());
    assert!(
        drawn.ends_with("GPU 0: 1 more process\nGPU 1: 976 more processes\n"),
        "{drawn}"
    );
}

#[test]
fn invisible_processes_are_noted() {
    let scene = Scene::with_change(2, |scene| {
        for gpu in &mut scene.sample.gpus {
            gpu.processes = Reading::Now(Vec::new());
        }
        scene.sample.gpus[0].unlisted_memory_bytes = Some(1_181_116_006);
        scene.sample.gpus[0].allocated_to = vec![Allocation::Slurm {
            job_id: "88123".to_owned(),
            user: None,
        }];
    });
    let drawn = strip_styles(&scene.render_piped());
    let note = "GPU 0: processes of other namespaces are not visible: 1.10 GiB in use\n";
    assert!(
        drawn.ends_with(note) && !drawn.contains("no processes"),
        "{drawn}"
    );
}

#[test]
fn unused_allocated_gpu_shows_its_job() {
    let scene = Scene::with_change(2, |scene| {
        let allocated = Allocation::Slurm {
            job_id: "88123".to_owned(),
            user: Some("ana\x1b".to_owned()),
        };
        scene.sample.gpus[0].processes = Reading::Now(example_processes());
        scene.sample.gpus[0].allocated_to = vec![allocated.clone()];
        let [namespace, pod] = ["research", "train-0"].map(str::to_owned);
        let of_pod = |container: &str| Allocation::Kubernetes {
            namespace: namespace.clone(),
            pod: pod.clone(),
            container: container.to_owned(),
        };
        scene.sample.gpus[1].allocated_to = vec![allocated, of_pod("trainer"), of_pod("loader")];
    });
    let drawn = strip_styles(&scene.render_piped());
    assert!(
        drawn.contains("GPU 1: allocated to slurm 88123 (ana")
            && !drawn.contains("GPU 0: allocated"),
        "{drawn}"
    );
    assert!(
        drawn.ends_with("), pod research/train-0, no process\n") && !drawn.contains('\x1b'),
        "{drawn}"
    );
}

/// Returns the positions of the units, such as `°C`, in the line of a GPU.
fn find_mark_positions(drawn: &str, gpu: &str) -> Vec<usize> {
    let line = drawn
        .lines()
        .find(|line| line.starts_with(gpu))
        .unwrap_or_else(|| panic!("{gpu}: {drawn}"));
    let marks =
        [" %", "/141 GiB", "°C", "/700 W"].map(|mark| line.split(mark).next().unwrap().width());
    marks
        .into_iter()
        .filter(|place| *place < line.width())
        .collect()
}

#[test]
fn values_keep_their_columns_when_phrase_changes() {
    for width in [60, 80, 100, 120, 160, 200, 300] {
        let mut kept = ColumnWidths::default();
        let mut draw = |scene: &Scene| {
            strip_styles(&render(
                &scene.view(),
                make_terminal_layout(width),
                Some(&mut kept),
            ))
        };
        let mut scene = Scene::with_change(2, |scene| scene.is_one_shot = false);
        let before = find_mark_positions(&draw(&scene), " 0 ");
        for text in [
            "Clocks reduced: power-capped at 700 W.",
            "Xid 79: it fell off.",
        ] {
            let kind = if text.starts_with("Xid") {
                ConditionKind::Xid {
                    pid: None,
                    code: 79,
                    count: 1,
                    last_ms: NOW_MS,
                }
            } else {
                ConditionKind::Throttled {
                    reasons: vec![ThrottleReason::SwPowerCap],
                    limit_watts: None,
                    gpu_celsius: None,
                }
            };
            scene.sample.gpus[0]
                .conditions
                .push(make_condition(Severity::Notice, text, kind));
            let drawn = draw(&scene);
            assert_eq!(find_mark_positions(&drawn, " 0 "), before, "{drawn}");
            assert!(drawn.contains("power-capped"), "{drawn}");
        }
        // The columns must not move when the second GPU is lost, although its cells become narrow
        // and may have been the widest cells before.
        scene.sample.gpus[1] =
            make_unreadable_gpu(1, Health::Lost { since_ms: NOW_MS }, &Absence::GpuLost);
        let drawn = draw(&scene);
        assert_eq!(find_mark_positions(&drawn, " 0 "), before, "{drawn}");
        scene.sample.gpus.swap_remove(0);
        let line = draw(&scene)
            .lines()
            .find(|line| line.contains("GPU lost"))
            .map(str::to_owned)
            .unwrap();
        assert!(line.width() <= width, "{line}");
    }
}

#[test]
fn process_columns_keep_width_after_widest_process_ends() {
    let mut kept = ColumnWidths::default();
    let mut scene = Scene::with_change(1, |scene| {
        let mut all = example_processes();
        all[0].user = Reading::Now("somebody-long".to_owned());
        scene.sample.gpus[0].processes = Reading::Now(all);
    });
    let mut column_of = |scene: &Scene| {
        let drawn = strip_styles(&render(
            &scene.view(),
            make_terminal_layout(120),
            Some(&mut kept),
        ));
        drawn.lines().find_map(|line| line.find("WHAT")).unwrap()
    };
    let before = column_of(&scene);
    scene.sample.gpus[0].processes = Reading::Now(example_processes().split_off(1));
    assert_eq!(column_of(&scene), before);
}

#[test]
fn long_name_does_not_break_other_lines() {
    let scene = Scene::with_change(3, |scene| {
        scene.inventory.gpus[1].name =
            Reading::Now("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition".to_owned());
        scene.is_one_shot = false;
        scene.add_history();
    });
    for width in [80, 100, 120] {
        let drawn = strip_styles(&render(
            &scene.view(),
            make_terminal_layout(width),
            Some(&mut ColumnWidths::default()),
        ));
        let line = drawn
            .lines()
            .find(|line| line.starts_with(" 1 RTX PRO 6000 Max-Q "))
            .unwrap_or_else(|| panic!("{drawn}"));
        assert!(
            line.contains(" GiB") && line.contains(" W"),
            "one line: {drawn}"
        );
    }
    let short = strip_styles(&render_short(&scene.view(), make_terminal_layout(80), &[]));
    assert!(short.contains("[1] RTX PRO 6000 Max-Q |"), "{short}");
    assert!(
        strip_styles(&scene.render_table(make_terminal_layout(300)))
            .contains("Max-Q Workstation Edition"),
        "where there is room, it is whole"
    );
}

#[test]
fn several_phrases_share_one_line() {
    let scene = Scene::with_change(1, |scene| {
        let advice = "Check power, cooling and seating, then reboot; if the error recurs, the \
                      board or the slot is faulty.";
        let xid = |code| ConditionKind::Xid {
            pid: None,
            code,
            count: 1,
            last_ms: NOW_MS,
        };
        scene.is_one_shot = false;
        scene.sample.gpus[0].conditions = vec![
            make_condition(
                Severity::Critical,
                &format!("Xid 79: The GPU fell off. {advice}"),
                xid(79),
            ),
            make_condition(
                Severity::Warning,
                &format!("Xid 31: An address. {advice}"),
                xid(31),
            ),
            make_condition(
                Severity::Warning,
                &format!("NVLink 3 is down: slow; {advice}"),
                ConditionKind::NvLinkDown { links: vec![3] },
            ),
        ];
    });
    let drawn = strip_styles(&scene.render_table(make_terminal_layout(60)));
    assert!(
        drawn.contains("\n   Xid 79: fell off the bus, Xid 31: bad address\n   NVLink 3 down\n"),
        "{drawn}"
    );
    let short = strip_styles(&render_short(&scene.view(), make_terminal_layout(200), &[]));
    assert!(short.contains("| Xid 79: fell off the bus |"), "{short}");
    for text in [
        drawn,
        short,
        strip_styles(&scene.render_table(make_terminal_layout(200))),
    ] {
        assert!(!text.contains("seating"), "{text}");
    }
}

#[test]
fn load_level_sets_color_and_font_weight() {
    let scene = Scene::with_change(1, |scene| {
        scene.sample.gpus[0].utilization.gpu_percent = Reading::Now(95.0);
    });
    let painted = scene.render_table(PIPE);
    assert!(
        painted.contains(&line::paint(
            line::choose_load_style(LoadLevel::Heavy),
            "95 %"
        )),
        "{painted:?}"
    );
    let mut view = scene.view();
    view.thresholds.utilization = [96, 97];
    let painted = render(&view, PIPE, None);
    assert!(
        painted.contains(&line::paint(
            line::choose_load_style(LoadLevel::Light),
            "95 %"
        )),
        "{painted:?}"
    );
}
