//! The details of a single process as lines of text. Secret values in its environment are masked,
//! so that other people in front of the screen cannot read them.

use gpumon_probe::{
    model::{Absence, Owner, Process, Reading},
    units::format_byte_size,
};

use super::ProcessScreen;
use crate::{
    describe::{self, find_notebook_path},
    terminal::units::{format_compact_duration, format_optional},
    top::{
        dialog::StyledLine,
        inspect::ProcessAttributes,
        model::Model,
        painter::Painter,
        text::{
            align_left, describe_process, format_date_and_time, format_percent, format_reading,
            make_printable, wrap,
        },
    },
};

const LABEL_WIDTH: usize = 14;

/// Returns all details as lines, and the index of the line at which the environment starts.
pub(super) fn format_details(
    painter: &Painter<'_>,
    columns: u16,
    screen: &ProcessScreen,
    model: &Model,
) -> (Vec<StyledLine>, Option<usize>) {
    let ProcessScreen { key, process, .. } = screen;
    let mut groups = DetailGroups {
        lines: Vec::new(),
        columns: columns.into(),
        painter,
    };
    if !screen.is_there {
        groups.lines.push(vec![(
            "The process is no longer on this GPU.".to_owned(),
            painter.theme.notice,
        )]);
    }
    let part = describe::find_mig_device_of_process(process, model.find_board(key.gpu));
    groups.add_gpu_usage(
        process,
        &describe::format_device_label(key.gpu, part),
        model.now_ms(),
    );
    groups.add_owner(process);
    let environment = match &screen.found {
        None => {
            groups.add_detail("", "reading /proc");
            None
        }
        Some(Err(why)) => {
            groups.add_detail("/proc", why);
            Some(0)
        }
        Some(Ok(attributes)) => {
            Some(groups.add_attributes(attributes, process, screen.are_secrets_shown))
        }
    };
    (groups.lines, environment)
}

pub(in crate::top) fn process_name(process: &Process) -> String {
    let name = process
        .name
        .value()
        .cloned()
        .or_else(|| describe_process(process, find_notebook_path(process)));
    make_printable(&name.unwrap_or_else(|| "unknown".to_owned()))
}

struct DetailGroups<'a, 'b> {
    lines: Vec<StyledLine>,
    columns: usize,
    painter: &'a Painter<'b>,
}

impl DetailGroups<'_, '_> {
    fn add_detail(&mut self, label: &str, text: &str) {
        for (place, part) in wrap(text, self.columns.saturating_sub(LABEL_WIDTH))
            .into_iter()
            .enumerate()
        {
            let label = if place == 0 { label } else { "" };
            self.lines.push(vec![
                (align_left(label, LABEL_WIDTH), self.painter.theme.dim),
                (part, self.painter.theme.plain),
            ]);
        }
    }

    fn add_gpu_usage(&mut self, process: &Process, place: &str, now_ms: u64) {
        let mig = process.mig.map(|mig| {
            format!(
                ", MIG instance {}/{}",
                mig.gpu_instance, mig.compute_instance
            )
        });
        let mps = if process.mps { ", through MPS" } else { "" };
        self.add_detail("GPU", &format!("{place}{}{mps}", mig.unwrap_or_default()));
        self.add_detail(
            "memory",
            &format_reading(&process.memory_bytes, |held| format_byte_size(*held as f64)),
        );
        let shares = [
            ("SM", &process.sm_percent),
            ("memory", &process.memory_percent),
            ("encoder", &process.encoder_percent),
            ("decoder", &process.decoder_percent),
        ];
        let shares = shares.map(|(name, share)| format!("{name} {}", format_percent(share)));
        self.add_detail("use", &shares.join("   "));
        self.add_detail(
            "user",
            &format_reading(&process.user, |user| make_printable(user)),
        );
        self.add_detail(
            "started",
            &format_reading(&process.started_ms, |started| {
                format!(
                    "{}, {} ago",
                    format_date_and_time(*started),
                    format_compact_duration(now_ms.saturating_sub(*started))
                )
            }),
        );
    }

    fn add_owner(&mut self, process: &Process) {
        let Some(owner) = process.owner.value() else {
            return self.add_detail(
                "belongs to",
                &format_reading(&process.owner, |_| String::new()),
            );
        };
        let Owner {
            notebook,
            slurm: _,
            pbs: _,
            lsf: _,
            pod,
            container,
            unit,
            rank,
            parents,
            partial,
        } = owner;
        if let Some(notebook) = notebook {
            let path = match &notebook.path {
                Reading::Absent(Absence::Unknown) => "a notebook without a name".to_owned(),
                path => format_reading(path, ToOwned::to_owned),
            };
            self.add_detail(
                "notebook",
                &make_printable(&format!(
                    "{path}, kernel {} ({})",
                    notebook.kernel_id, notebook.kernel_pid
                )),
            );
        }
        if let Some((kind, job)) = owner.batch_job() {
            let step = job
                .step
                .as_ref()
                .map_or_else(String::new, |step| format!(", step {step}"));
            self.add_detail(
                &format!("{} job", kind.json_name()),
                &make_printable(&format!("{}{step}", job.job_id)),
            );
        }
        if let Some(rank) = rank {
            self.add_detail("rank", &rank.to_string());
        }
        if let Some(pod) = pod {
            let uid = if pod.name.is_some() {
                format!(" ({})", pod.uid)
            } else {
                String::new()
            };
            self.add_detail("pod", &make_printable(&(pod.label() + &uid)));
        }
        if let Some(container) = container {
            let name = container
                .name
                .as_ref()
                .map_or_else(String::new, |name| format!(" ({name})"));
            let reported =
                format!("{:?} {}", container.runtime, container.id).to_lowercase() + &name;
            self.add_detail("container", &make_printable(&reported));
        }
        if let Some(unit) = unit {
            self.add_detail("unit", &make_printable(unit));
        }
        if !parents.is_empty() {
            let line: Vec<_> = parents
                .iter()
                .map(|parent| format!("{} ({})", make_printable(&parent.name), parent.pid))
                .collect();
            self.add_detail("started by", &line.join(" ← "));
        } else if *partial {
            self.add_detail("started by", &Absence::NotReadYet.to_string());
        }
    }

    /// Adds the attributes read from `/proc`, and returns the index of the line at which the
    /// environment starts.
    fn add_attributes(
        &mut self,
        attributes: &ProcessAttributes,
        process: &Process,
        are_secrets_shown: bool,
    ) -> usize {
        let of = |attribute: &Result<String, String>| {
            attribute.clone().unwrap_or_else(|why| format!("- ({why})"))
        };
        let threads = if attributes.threads == 1 {
            "thread"
        } else {
            "threads"
        };
        self.add_detail(
            "state",
            &format!(
                "{}, parent {}, {} {threads}",
                attributes.state, attributes.parent, attributes.threads
            ),
        );
        let resident =
            |held: Option<u64>| format_optional(held, |held| format_byte_size(held as f64));
        let now = resident(process.host_memory_bytes.value().copied());
        let most = resident(attributes.most_resident_bytes);
        self.add_detail("host memory", &format!("{now}, peak {most}"));
        self.add_detail("CPU time", &format_compact_duration(attributes.cpu_ms));
        self.add_detail("program", &of(&attributes.program));
        self.add_detail("folder", &of(&attributes.folder));
        let command = attributes
            .arguments
            .as_ref()
            .map(|arguments| arguments.join(" "))
            .map_err(Clone::clone);
        self.add_detail("command", &of(&command));
        let begin = self.lines.len();
        match &attributes.environment {
            Err(why) => self.add_detail("environment", &format!("- ({why})")),
            Ok(entries) if entries.is_empty() => self.add_detail("environment", "empty"),
            Ok(entries) => {
                for (place, entry) in entries.iter().enumerate() {
                    let entry = if are_secrets_shown {
                        entry.clone()
                    } else {
                        mask_secret(entry)
                    };
                    self.add_detail(if place == 0 { "environment" } else { "" }, &entry);
                }
            }
        }
        begin
    }
}

// Masking of secret values.

/// Parts of variable names that indicate a secret value.
const SECRET_NAMES: [&str; 9] = [
    "TOKEN",
    "KEY",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "_PASS",
    "_PWD",
    "SECRET",
    "CREDENTIAL",
];

/// The replacement for every secret value. The fixed length does not reveal the length of the
/// secret.
const MASK: &str = "********";

/// Returns the entry `NAME=value`, with the value masked if it may be a secret.
fn mask_secret(entry: &str) -> String {
    let Some((name, value)) = entry.split_once('=') else {
        return entry.to_owned();
    };
    let upper = name.to_uppercase();
    if !value.is_empty() && SECRET_NAMES.iter().any(|word| upper.contains(word)) {
        return format!("{name}={MASK}");
    }
    format!("{name}={}", mask_passwords(value))
}

/// Masks the password in each URL of the form `scheme://user:password@host`.
fn mask_passwords(value: &str) -> String {
    let is_of_scheme =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.');
    let (mut masked, mut rest) = (String::new(), value);
    while let Some(at) = rest.find("://") {
        let (scheme, behind) = rest.split_at(at + "://".len());
        let end = behind.find("://").map_or(behind.len(), |next| {
            behind[..next].trim_end_matches(is_of_scheme).len()
        });
        let (address, others) = behind.split_at(end);
        let (host, _) = address.split_once('/').unwrap_or((address, ""));
        masked += scheme;
        match host
            .rsplit_once('@')
            .and_then(|(login, _)| login.split_once(':'))
        {
            Some((user, password)) if !password.is_empty() => {
                masked.extend([user, ":", MASK, &address[user.len() + 1 + password.len()..]]);
            }
            _ => masked += address,
        }
        rest = others;
    }
    masked + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_look_like_secrets_are_masked() {
        for secret in [
            "DB_PASS=x",
            "GPG_PASSPHRASE=x",
            "MYSQL_PWD=x",
            "HF_TOKEN=hf_abc",
            "wandb_api_key=1",
            "PGPASSWORD=x",
            "AWS_SECRET_ACCESS_KEY=y",
        ] {
            let (name, _) = secret.split_once('=').unwrap();
            assert_eq!(mask_secret(secret), format!("{name}=********"));
        }
        assert_eq!(
            mask_secret("DB=postgres://ana:a:b@host/db?x=@y"),
            "DB=postgres://ana:********@host/db?x=@y"
        );
        for (brokers, masked_brokers) in [
            (
                "amqp://a:p1@h1;amqp://b:p2@h2",
                "amqp://a:********@h1;amqp://b:********@h2",
            ),
            (
                "redis://:p@h1/0,http://h2/x rediss+x://b:p@q@h2/",
                "redis://:********@h1/0,http://h2/x rediss+x://b:********@h2/",
            ),
        ] {
            assert_eq!(
                mask_secret(&format!("BROKER_URL={brokers}")),
                format!("BROKER_URL={masked_brokers}")
            );
        }
        for open in [
            "PWD=/root",
            "COMPASS=north",
            "URL=a://b://c",
            "PATH=/bin",
            "HF_TOKEN=",
            "PROXY=http://host:80/a:b@c",
            "odd",
            "MAIL=ana@example.org",
        ] {
            assert_eq!(mask_secret(open), open);
        }
    }
}
