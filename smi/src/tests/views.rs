//! The command lines that are tested on each test machine.

use gpumon_probe::vendor::nvml::query::QueryBackend;
use jiff::{civil::date, tz::TimeZone};

use crate::{
    Context,
    command_line::{self, find_subcommand},
    query::{self, QueryKind},
    render,
    subcommand::tests::run_line,
};

/// Command lines that query the driver. Commands that loop are limited to one round.
const COMMAND_LINES: &[&str] = &[
    "",
    "-L",
    "--version",
    "-q",
    "-q -d SUPPORTED_CLOCKS,SUPPORTED_GPU_TARGET_TEMP,POWER_SMOOTHING,POWER_PROFILES",
    "-q -x",
    "dmon -c 1 -s pucvmet",
    "dmon -c 1 --gpm-metrics 1,2,3,5,10,13",
    "pmon -c 1 -s um",
    "topo -m",
    "topo -mp",
    "topo -c 0",
    "topo -p -i 0,1",
    "topo -n 4 -i 0",
    "topo -C -i 0",
    "topo -M -i 0",
    "topo -gnid -i 0",
    "topo -p2p n",
    "topo -p2p r",
    "topo -p2p w",
    "topo -p2p a",
    "topo -p2p p",
    "nvlink -s",
    "nvlink -c",
    "nvlink -e",
    "nvlink -p",
    "nvlink -R",
    "nvlink -gt d",
    "nvlink -gt r",
    "nvlink -gBwMode",
    "nvlink -info",
];

/// Returns all command lines. Each query requests all of its fields.
pub(super) fn list_command_lines() -> Vec<String> {
    let query = |kind: QueryKind| {
        let names: Vec<_> = query::list_fields(kind)
            .into_iter()
            .map(|field| field.names[0])
            .collect();
        format!("{}={} --format=csv", kind.switch(), names.join(","))
    };
    COMMAND_LINES
        .iter()
        .map(|form| (*form).to_owned())
        .chain(QueryKind::ALL.map(query))
        .collect()
}

/// Returns the output of a command line on a machine with two GPUs.
pub(super) fn render_command_line(line: &str, driver: &dyn QueryBackend) -> String {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    if words
        .first()
        .is_some_and(|name| find_subcommand(name).is_some())
    {
        return run_line(line, driver).0;
    }
    let parsed = command_line::parse(&words).unwrap();
    let now = date(2026, 11, 7)
        .at(9, 5, 3, 0)
        .to_zoned(TimeZone::UTC)
        .unwrap();
    render(
        &parsed.command,
        &Context {
            driver,
            gpus: &[0, 1],
            count: 2,
            now,
        },
    )
}
