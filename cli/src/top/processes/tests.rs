//! Tests of the list's order, filter, search, tree, and selection.

use clap::ValueEnum as _;
use gpumon_probe::model::{Ancestor, Owner, Reading};

use super::*;
use crate::top::testing;

fn build_model() -> Model {
    let mut model = testing::simulated_model(2);
    let processes = testing::example_processes(8);
    let sample = model.sample.as_mut().unwrap();
    let (first, second) = processes.split_at(4);
    sample.gpus[0].processes = Reading::Now(first.to_vec());
    sample.gpus[1].processes = Reading::Now(second.to_vec());
    model
}

fn list_pids(rows: &[Row<'_>]) -> Vec<String> {
    rows.iter()
        .map(|row| row.format_cell(Column::Pid, 0))
        .collect()
}

#[test]
fn absent_values_sort_last_in_both_directions() {
    let mut model = build_model();
    let absent = Reading::Absent(gpumon_probe::model::Absence::Unknown);
    if let Some(Reading::Now(processes)) = model
        .sample
        .as_mut()
        .map(|sample| &mut sample.gpus[0].processes)
    {
        processes[1].sm_percent = absent;
    }
    for column in Column::value_variants().iter().copied() {
        let of = |descending| {
            let view = ProcessView {
                sort: column,
                descending,
                ..ProcessView::default()
            };
            list_pids(&view.list_rows(&model, None))
        };
        let (rising, falling) = (of(false), of(true));
        assert_eq!(rising.len(), 8);
        assert_eq!(of(false), rising, "{column:?} is stable");
        if matches!(
            column,
            Column::Pid | Column::Memory | Column::Time | Column::Share
        ) {
            let reversed: Vec<_> = falling.iter().rev().cloned().collect();
            assert_eq!(rising, reversed, "{column:?}");
        }
        if column == Column::Sm {
            assert_eq!((rising[7].as_str(), falling[7].as_str()), ("4007", "4007"));
        }
    }
    let by_time = ProcessView {
        sort: Column::Time,
        descending: true,
        ..ProcessView::default()
    };
    assert_eq!(
        by_time.list_rows(&model, None)[0].format_cell(Column::Pid, 0),
        "4000",
        "it runs the longest"
    );
}

#[test]
fn filter_accepts_words_and_columns() {
    let model = build_model();
    let of = |text: &str| {
        let view = ProcessView {
            filter: Filter::new(text),
            sort: Column::Pid,
            descending: false,
            ..ProcessView::default()
        };
        list_pids(&view.list_rows(&model, None))
    };
    assert_eq!(of("TRAIN"), ["4000", "4028"]);
    assert_eq!(of("train user:bob"), ["4028"]);
    assert_eq!(of("gpu:1 user:ana"), ["4042"]);
    assert_eq!(of("pid:400"), [""; 0]);
    assert_eq!(of("USER:bob train"), ["4028"]);
    assert_eq!(of("nobody"), [""; 0]);
    assert_eq!(of("  ").len(), 8);
    let view = ProcessView::default();
    assert_eq!(
        view.list_rows(&model, Some(1)).len(),
        4,
        "the GPU that the screen is about"
    );
}

#[test]
fn search_wraps_around_in_both_directions() {
    let model = build_model();
    let mut view = ProcessView {
        sort: Column::Pid,
        descending: false,
        search: "vllm".to_owned(),
        ..ProcessView::default()
    };
    let rows = view.list_rows(&model, None);
    let mut found = Vec::new();
    for (forward, or_here) in [
        (true, true),
        (true, true),
        (true, false),
        (true, false),
        (false, false),
    ] {
        assert!(view.select_next_match(&rows, forward, or_here));
        found.push(view.selected.unwrap().pid);
    }
    assert_eq!(found, [4007, 4007, 4035, 4007, 4035]);
    view.search = "nobody".to_owned();
    assert!(!view.select_next_match(&rows, true, true));
    assert_eq!(view.selected.unwrap().pid, 4035, "it stays where it was");
    assert!(!view.select_next_match(&[], true, false));
}

#[test]
fn selection_follows_process_and_stays_visible() {
    let mut model = build_model();
    let mut view = ProcessView {
        sort: Column::Memory,
        ..ProcessView::default()
    };
    let rows = view.list_rows(&model, None);
    view.move_selection(&rows, 1);
    view.move_selection(&rows, 6);
    let selected = view.selected.unwrap();
    view.scroll_to_selection(&rows, 3);
    assert_eq!((view.selected_position(&rows), view.scroll), (Some(6), 4));
    view.move_selection(&rows, 100);
    assert_eq!(view.selected_position(&rows), Some(7));
    view.selected = Some(selected);
    if let Some(Reading::Now(processes)) = model
        .sample
        .as_mut()
        .map(|sample| &mut sample.gpus[selected.gpu as usize].processes)
    {
        processes
            .iter_mut()
            .find(|process| process.pid == selected.pid)
            .unwrap()
            .memory_bytes = Reading::Now(1 << 40);
    }
    let rows = view.list_rows(&model, None);
    view.scroll_to_selection(&rows, 3);
    assert_eq!((view.selected_position(&rows), view.scroll), (Some(0), 0));
    // A new process that has the PID of an earlier process is a different process.
    if let Some(Reading::Now(processes)) = model
        .sample
        .as_mut()
        .map(|sample| &mut sample.gpus[selected.gpu as usize].processes)
    {
        processes
            .iter_mut()
            .find(|process| process.pid == selected.pid)
            .unwrap()
            .started_ms = Reading::Now(5);
    }
    assert_eq!(view.selected_position(&view.list_rows(&model, None)), None);
}

#[test]
fn tree_shows_chain_of_ancestors_in_one_row() {
    let mut model = build_model();
    let ancestors = |pids: &[u32]| {
        let parents = pids
            .iter()
            .map(|pid| Ancestor {
                pid: *pid,
                name: format!("parent{pid}"),
            })
            .collect();
        Reading::Now(Owner {
            parents,
            ..Owner::default()
        })
    };
    if let Some(Reading::Now(processes)) = model
        .sample
        .as_mut()
        .map(|sample| &mut sample.gpus[0].processes)
    {
        processes[0].owner = ancestors(&[900, 800, 100]);
        processes[1].owner = ancestors(&[901, 800, 100]);
        // The parent of this process also uses a GPU.
        processes[2].owner = ancestors(&[4000, 900, 800, 100]);
    }
    let view = ProcessView {
        tree: true,
        sort: Column::Pid,
        descending: false,
        ..ProcessView::default()
    };
    let rows = view.list_rows(&model, Some(0));
    let drawn: Vec<(usize, String)> = rows
        .iter()
        .map(|row| (row.depth, row.format_cell(Column::Pid, 0)))
        .collect();
    let expected = [
        (0, "800"),
        (1, "900"),
        (2, "4000"),
        (3, "4014"),
        (1, "901"),
        (2, "4007"),
        (0, "4021"),
    ];
    assert_eq!(drawn, expected.map(|(depth, pid)| (depth, pid.to_owned())));
    assert_eq!(
        rows[0].format_cell(Column::What, 0),
        "parent100 ─ parent800"
    );
    assert_eq!(
        [21, 20].map(|columns| rows[0].fit_label(columns)),
        ["parent100 ─ parent800", "… ─ parent800"]
    );
    assert_eq!(
        (rows[0].key(), rows[1].format_cell(Column::What, 0).as_str()),
        (None, "parent900")
    );
}

#[test]
fn narrow_list_keeps_most_informative_columns() {
    let mut model = build_model();
    let view = ProcessView::default();
    let of =
        |model: &Model, columns| ColumnLayout::new(&view, &view.list_rows(model, None), columns);
    for columns in 40..300 {
        let cells = of(&model, columns);
        let end = cells
            .0
            .iter()
            .map(|(_, at, width)| at + width)
            .max()
            .unwrap();
        assert!(end <= columns, "{end} of {columns}");
        assert!(
            cells.0.iter().any(|(column, ..)| *column == Column::What),
            "{columns}"
        );
    }
    let at = |model: &Model, columns| {
        of(model, columns)
            .0
            .iter()
            .map(|(column, ..)| *column)
            .collect::<Vec<_>>()
    };
    for column in [Column::Sm, Column::Memory, Column::Pid, Column::User] {
        assert!(at(&model, 80).contains(&column), "{column:?}");
    }
    // The columns for encoder, decoder and type are uninformative for these processes, so they are
    // omitted to leave more room for the names.
    for column in [Column::Encoder, Column::Decoder, Column::Kind] {
        assert!(!at(&model, 80).contains(&column), "{column:?}");
    }
    assert_eq!(
        at(&model, 160),
        Column::default_columns(),
        "where there is room, they stay"
    );
    if let Some(Reading::Now(processes)) = model
        .sample
        .as_mut()
        .map(|sample| &mut sample.gpus[0].processes)
    {
        processes[0].encoder_percent = Reading::Now(7.0);
    }
    assert!(at(&model, 80).contains(&Column::Encoder));
}

#[test]
fn unknown_filter_column_is_reported_and_ignored() {
    let filter = Filter::new("usr:x train");
    assert_eq!(
        filter.mistake.as_deref(),
        Some("unknown column 'usr': did you mean 'user'?")
    );
    let model = build_model();
    let view = ProcessView {
        filter,
        sort: Column::Pid,
        descending: false,
        ..ProcessView::default()
    };
    assert_eq!(list_pids(&view.list_rows(&model, None)), ["4000", "4028"]);
    let far = Filter::new("frobnicate:x").mistake.unwrap();
    assert!(
        far.starts_with("unknown column 'frobnicate': use gpu, pid, user,"),
        "{far}"
    );
    for text in ["user:x", "10:42", ":x", "", "x"] {
        assert_eq!(Filter::new(text).mistake, None, "{text}");
    }
}

#[test]
fn gpu_filter_includes_processes_of_mig_devices() {
    let mut model = build_model();
    let part = |index, gpu_instance| gpumon_probe::model::MigDevice {
        index,
        uuid: format!("MIG-{index}"),
        instance: gpumon_probe::model::MigInstance {
            gpu_instance,
            compute_instance: 0,
        },
        profile: Reading::Now("1g.18gb".to_owned()),
        multiprocessors: Reading::Absent(gpumon_probe::model::Absence::NotSupported),
        copy_engines: Reading::Absent(gpumon_probe::model::Absence::NotSupported),
        decoders: Reading::Absent(gpumon_probe::model::Absence::NotSupported),
        encoders: Reading::Absent(gpumon_probe::model::Absence::NotSupported),
    };
    let parts = vec![part(0, 9), part(1, 7)];
    if let Some(Reading::Now(processes)) = model
        .sample
        .as_mut()
        .map(|sample| &mut sample.gpus[1].processes)
    {
        processes[0].mig = Some(parts[1].instance);
        processes[1].mig = Some(parts[0].instance);
    }
    model.inventory.as_mut().unwrap().gpus[1].mig_devices = parts;
    let of = |text: &str| {
        let view = ProcessView {
            filter: Filter::new(text),
            sort: Column::Gpu,
            descending: false,
            ..ProcessView::default()
        };
        view.list_rows(&model, None)
            .iter()
            .map(|row| row.format_cell(Column::Gpu, 0))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of("gpu:1"),
        ["1", "1", "1:0", "1:1"],
        "in the order of the parts"
    );
    assert_eq!(of("gpu:1:0"), ["1:0"]);
}

#[test]
fn truncated_command_keeps_job_and_is_searched_completely() {
    let mut model = build_model();
    if let Some(Reading::Now(processes)) = model
        .sample
        .as_mut()
        .map(|sample| &mut sample.gpus[0].processes)
    {
        processes[0].command =
            Reading::Now("/home/ana/env/bin/python train.py --bf16 --lr 0.0001".to_owned());
        processes[0].name = Reading::Now("python".to_owned());
        let slurm = Some(gpumon_probe::model::BatchJob {
            job_id: "88123".to_owned(),
            step: None,
            private: false,
        });
        processes[0].owner = Reading::Now(Owner {
            slurm,
            ..Owner::default()
        });
    }
    let view = ProcessView {
        filter: Filter::new("/home/ana/env"),
        ..ProcessView::default()
    };
    let rows = view.list_rows(&model, None);
    assert_eq!(rows.len(), 1);
    assert_eq!(
        rows[0].fit_label(40),
        "python train.py --bf16 --… (slurm 88123)"
    );
    assert_eq!(
        rows[0].fit_label(80),
        "python train.py --bf16 --lr 0.0001 (slurm 88123)"
    );
}
