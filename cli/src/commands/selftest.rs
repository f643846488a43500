//! `gpumon selftest`: compares gpumon's readings with known GPU loads.

use std::time::Duration;

use gpumon_probe::untrusted::escape_untrusted;
use gpumon_workload::protocol::{
    BackendChoice, DeviceName, Job, ReadingCheck, Report, SelftestJob, Unit, Verdict, Where,
};

use crate::{
    describe,
    exit::Result,
    options::{SourceArgs, parse_time},
    terminal::{
        columns::{Column, Columns, terminal_columns},
        line::{ALARM, DIM, HEALTHY, STRONG, paint},
        units::ABSENT,
    },
    workload_run::{self, ReportFormatter},
};

/// Verify gpumon's readings against known GPU loads
///
/// The loads hold memory, keep half of the multiprocessors busy, run kernels half of the time, read
/// memory, multiply matrices, copy over PCIe and NVLink, launch tiny kernels, and compute on the
/// CPU, for six seconds each. What a load does is counted independently of the driver: by bytes,
/// operations, and host and device clocks. Each reading of the probe is compared with that count.
/// What limits the GPU is compared with the known cause of the load.
///
/// The self-test takes about two minutes per GPU and up to 8 GiB in addition to the matrices. It
/// refuses a GPU on which another user computes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct SelftestArgs {
    /// GPU to test: CUDA index, UUID or its prefix, or PCI bus ID, as listed by `gpumon info`;
    /// nvidia:0; or `all`
    #[arg(long, value_name = "GPU", default_value = "0")]
    device: String,

    /// Run each load for 3 seconds, and skip energy, which needs more time
    #[arg(long)]
    quick: bool,

    /// Stop after this time, for example 30s or 2h; the default is ten minutes
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    time_limit: Option<Duration>,

    /// Print one JSON object per line for each reading
    #[arg(long)]
    json: bool,
}

const NOTES: &str = "\
Examples:
  gpumon selftest
      Test GPU 0 and its links to the next GPU.
  gpumon selftest --device all --json | jq -r 'select(.verdict == \"mismatch\") \
| [.gpu, .load, .reading] | @tsv'
      List the mismatches.

Environment:
  GPUMON_LIBCUDA  path of the CUDA driver library, if the loader does not find libcuda.so.1
  GPUMON_NVML_LIB  path of the NVML library, if the loader does not find libnvidia-ml.so.1

Exit codes: 0 all readings verified, 1 mismatch, a load failed or nothing could be compared, \
2 invalid argument, 3 no such GPU or no driver, 5 refused (not enough memory, or GPU in use by \
another user), 130 interrupted";

pub(crate) fn run(source: &SourceArgs, args: &SelftestArgs) -> Result {
    source.source.check_scenario_file()?;
    let place = Where {
        backend: BackendChoice::Cuda,
        device: Some(args.device.clone()),
        share: false,
    };
    let job = Job::Selftest(SelftestJob {
        place,
        quick: args.quick,
    });
    workload_run::run_and_print(
        source,
        &job,
        args.time_limit,
        None,
        &mut ChecksFormatter::with_width(terminal_columns()),
        args.json,
    )
}

/// The indentation of readings below the description of their load.
const INDENT: usize = 2;
const COLUMNS: [Column; 5] = [
    Column::new_left_aligned("reading", 0).with_min_width(39),
    Column::new_point_aligned("expected", 4, 3, 0),
    Column::new_point_aligned("reported", 4, 3, 0),
    Column::new_left_aligned("unit", 0).with_min_width(7),
    Column::new_left_aligned("result", 0).with_min_width(12),
];

#[derive(Debug)]
struct ChecksFormatter {
    columns: Columns,
    devices: Vec<DeviceName>,
    /// The load of the previously printed row.
    load: Option<String>,
    verified: usize,
    mismatches: usize,
    not_reported: usize,
}

impl ChecksFormatter {
    fn with_width(terminal: Option<usize>) -> Self {
        let columns = Columns::with_headings(&COLUMNS, terminal);
        Self {
            columns,
            devices: Vec::new(),
            load: None,
            verified: 0,
            mismatches: 0,
            not_reported: 0,
        }
    }

    /// Returns the row of a check. Before the first row of each load, the load is described.
    fn format_check(&mut self, check: &ReadingCheck) -> String {
        let mut text = self.format_headings();
        if self.load.as_deref() != Some(&check.load) {
            self.load = Some(check.load.to_string());
            text += &(paint(STRONG, &describe::capitalize(&check.does)) + "\n");
        }
        let (count, style) = match check.verdict {
            Verdict::Verified => (&mut self.verified, HEALTHY),
            Verdict::Mismatch => (&mut self.mismatches, ALARM),
            Verdict::NotReported => (&mut self.not_reported, DIM),
        };
        *count += 1;
        let verdict = paint(style, check.verdict.describe());
        let unit = check.unit.name();
        let figure = |reading| {
            check
                .unit
                .format_without_unit(reading)
                .unwrap_or_else(|| ABSENT.to_owned())
        };
        let reading = format!("{:INDENT$}GPU {} {}", "", check.gpu, check.reading);
        let cells = [
            reading,
            figure(&check.expected),
            figure(&check.reported),
            unit.to_owned(),
            verdict,
        ];
        text += &(self.columns.format_row(&cells) + "\n");
        let why = match check.verdict {
            Verdict::Mismatch => Some(format!(
                "expected {} to {} {unit}: {}",
                figure(&check.least),
                figure(&check.most),
                check.how
            )),
            // The reason why no window can be checked.
            Verdict::NotReported if check.unit == Unit::Windows => Some(check.how.clone()),
            Verdict::NotReported | Verdict::Verified => None,
        };
        if let Some(why) = why {
            text += &self.columns.format_remark(2 * INDENT, DIM, &why);
        }
        text
    }

    fn count_checks(&self) -> usize {
        self.verified + self.mismatches + self.not_reported
    }

    /// Returns the GPUs and the headings before the first row, and an empty string afterwards.
    fn format_headings(&mut self) -> String {
        if self.count_checks() > 0 {
            return String::new();
        }
        let devices = self
            .devices
            .iter()
            .map(describe::label_device)
            .collect::<Vec<_>>()
            .join(", ");
        devices + "\n" + &self.columns.headings()
    }
}

impl ReportFormatter for ChecksFormatter {
    fn format_result(&mut self, report: &Report) -> Option<String> {
        match report {
            Report::Check { check } => return Some(self.format_check(check)),
            Report::Failed { id, error, .. } if self.count_checks() > 0 => {
                let error = escape_untrusted(&format!("{id}: failed: {error}"));
                return Some(self.columns.format_remark(2 * INDENT, ALARM, &error));
            }
            Report::Begun { devices, .. } => self.devices.clone_from(devices),
            _ => {}
        }
        None
    }

    fn format_summary(&self) -> String {
        let all = self.count_checks();
        if all == 0 {
            return String::new();
        }
        let mut parts = vec![format!("{} of {all} readings verified", self.verified)];
        let mismatches = || paint(ALARM, &format!("{} mismatch", self.mismatches));
        parts.extend((self.mismatches > 0).then(mismatches));
        parts
            .extend((self.not_reported > 0).then(|| format!("{} not reported", self.not_reported)));
        format!("\n{}\n", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use crate::terminal::snapshot::assert_report_matches_snapshot;
    use gpumon_probe::model::{Absence, Reading};

    use super::*;

    fn make_check(load: &'static str, verdict: Verdict) -> ReadingCheck {
        ReadingCheck {
            load: load.into(),
            does: "memory is read".into(),
            gpu: 0,
            reading: "activity.dram_bandwidth_percent".into(),
            unit: Unit::Percent,
            expected: Reading::Now(92.34),
            least: Reading::Now(87.34),
            most: Reading::Now(97.34),
            reported: match verdict {
                Verdict::Verified => Reading::Now(91.0),
                Verdict::Mismatch => Reading::Now(11.0),
                Verdict::NotReported => Reading::Absent(Absence::NotSupported),
            },
            verdict,
            how: "bytes were counted".to_owned(),
            text: String::new(),
        }
    }

    #[test]
    fn table_matches_its_snapshot() {
        let failed: Report = serde_json::from_str(
            r#"{"report":"failed","id":"read","backend":"cuda","error":"no memory","code":1}"#,
        )
        .unwrap();
        assert_report_matches_snapshot("selftest", |terminal| {
            let mut text = ChecksFormatter::with_width(terminal);
            assert_eq!(text.format_result(&failed), None, "there is no table yet");
            let mut shown = String::new();
            for (load, verdict) in [
                ("read", Verdict::Verified),
                ("read", Verdict::Mismatch),
                ("other", Verdict::NotReported),
            ] {
                shown += &text.format_check(&make_check(load, verdict));
            }
            let unknown = || Reading::Absent(Absence::Unknown);
            shown += &text.format_check(&ReadingCheck {
                reading: "limits.power_percent".into(),
                unit: Unit::Windows,
                expected: unknown(),
                reported: unknown(),
                how: "not checkable: the driver did not report a power cap".to_owned(),
                ..make_check("other", Verdict::NotReported)
            });
            shown + &text.format_result(&failed).unwrap_or_default() + &text.format_summary()
        });
        assert_eq!(ChecksFormatter::with_width(None).format_summary(), "");
    }
}
