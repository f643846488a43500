//! The reference page of the database, which `make types` generates.

use std::{env, fmt::Write, fs, path::Path};

use super::{
    DAY_MS, TIERS,
    schema::{Subject, TABLES, Table, VERSION},
};

/// Returns the description of a table in Markdown.
fn describe_table(name: &str) -> &'static str {
    match name {
        "device" => {
            "GPUs and MIG devices. `kind` is `gpu` or `mig`; `device_index` is the driver's \
             index, and `parent` is the UUID of the GPU to which a MIG device belongs."
        }
        "event" => {
            "Events. `json` is an [Event](api.md#event), and `kind` is the value of its key \
             `what`. Starts and ends of processes are kept for 30 days, other events for a year."
        }
        "condition" => {
            "Conditions of GPUs, from their beginning to their end; `to_ms` is NULL while a \
             condition lasts. `json` is a [Condition](api.md#condition)."
        }
        "cell" => "Executions of notebook cells. The columns are the keys of [Cell](api.md#cell).",
        "run" => "Runs of the workload runner. `json` is a [Run](api.md#run).",
        "job" => {
            "The Slurm, PBS or LSF jobs, pods, containers, notebooks and services that were on \
             each GPU or MIG device. A row is a [JobSpan](api.md#jobspan). `kind` begins with \
             `private_` for a private job. `to_ms` is the time at which the job was last seen \
             there, accurate to ten seconds."
        }
        "usage" => {
            "Energy and GPU time of each owner in the 15 minutes that begin at `at_ms`. A row is \
             an [OwnerUsage](api.md#ownerusage). `kind` is one of: the kind of the owner's job, \
             whose ID and name are in `id` and `name`; `user` for a user without a job; \
             `private_slurm`, `private_pbs` or `private_lsf` for a private job; `unheld` for GPUs \
             that no process held. The column `user` is empty if the user is not known."
        }
        _ => panic!("the table {name} has no description"),
    }
}

/// Returns the text of `docs/reference/history.md`.
fn render_reference() -> String {
    let mut text = String::from(
        "<!-- Generated from the catalogue of fields and the schema by `make types`. Do not edit \
         this file. -->\n# History database\n\n`gpumon serve --data-dir DIR` writes \
         `DIR/history.db`, an SQLite database in WAL mode. Other programs can read it at any time, \
         even while gpumon writes; copy it with `sqlite3 DIR/history.db \".backup copy.db\"`.\n\n",
    );
    let _ = writeln!(
        text,
        "`PRAGMA user_version` is the version of the schema, {VERSION}. Columns of new fields are \
         added without a new version. A gpumon that does not know the version leaves the file as \
         it is and keeps its history in memory.\n\nTimes (`_ms`) are milliseconds since 1970-01-01 \
         UTC.\n\n## Tables\n\n| Table | Contents |\n|---|---|"
    );
    for (tier, stored) in TIERS.iter().enumerate() {
        let (gpu, host) = (
            Subject::Gpu.table_name(tier),
            Subject::Host.table_name(tier),
        );
        let days = stored.keep_ms / DAY_MS;
        let _ = writeln!(
            text,
            "| `{gpu}`, `{host}` | One row every {} seconds for each GPU or MIG device, or for \
             the host; kept for {days} days. |",
            stored.resolution_ms / 1000
        );
    }
    for Table { name, .. } in TABLES {
        let _ = writeln!(text, "| `{name}` | {} |", describe_table(name));
    }
    for Table { name, columns, .. } in TABLES {
        let _ = writeln!(text, "\n### {name}\n\n```sql\n{columns}\n```");
    }
    for (subject, title) in [
        (Subject::Gpu, "gpu_10s, gpu_1min, gpu_15min"),
        (Subject::Host, "host_10s, host_1min, host_15min"),
    ] {
        let keys = subject.key_columns();
        let _ = writeln!(
            text,
            "\n### {title}\n\n```sql\n{keys}\n```\n\n`at_ms` is the beginning of the row's time \
             span, and `samples` the number of samples in it. NULL means that nothing was \
             read. Each field of the [catalogue](fields.md) has one or more columns, named as \
             in `gpumon --csv`: a gauge has its mean, its minimum (`_min`) and its maximum \
             (`_max`), to four digits; a counter or a state has its last value.\n\n| Field | \
             Columns |\n|---|---|"
        );
        for (metric, columns) in subject.metrics().iter().zip(subject.stat_column_names()) {
            let id = metric.field;
            let columns: Vec<_> = columns.iter().map(|column| format!("`{column}`")).collect();
            let _ = writeln!(text, "| `{id}` | {} |", columns.join(", "));
        }
    }
    text
}

#[test]
fn reference_page_matches_schema() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/history.md");
    let generated = render_reference();
    if env::var_os("GPUMON_UPDATE_TYPES").is_some() {
        fs::write(&path, generated).unwrap();
    } else {
        let is_same = fs::read_to_string(&path).is_ok_and(|committed| committed == generated);
        assert!(
            is_same,
            "docs/reference/history.md is out of date: run `make types`"
        );
    }
}
