//! The causes that limited the GPUs of a measurement or of a job.

use gpumon_probe::{
    model::{LimitClass, LimitSummary},
    units::join_list,
};

/// A description of the causes that limited one or more GPUs with the same main cause.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LimitLines {
    /// The shares of all causes.
    pub(crate) shares: String,
    /// The evidence for the main cause, and what to try first; `None` if there is neither.
    pub(crate) advice: Option<String>,
}

/// Describes what limited the GPUs, once for all GPUs with the same main cause. `gpus` contains the
/// name of each GPU, such as `GPU 3`. The names are in the text if it is not about all GPUs.
pub(crate) fn describe_limits<'a>(
    gpus: impl IntoIterator<Item = (String, Option<&'a LimitSummary>)>,
) -> Vec<LimitLines> {
    let mut groups: Vec<(LimitClass, Vec<String>, Vec<&LimitSummary>)> = Vec::new();
    let mut count = 0;
    for (name, summary) in gpus {
        count += 1;
        let Some((summary, main)) = summary.and_then(|it| Some((it, it.main()?))) else {
            continue;
        };
        match groups.iter_mut().find(|(cause, ..)| *cause == main) {
            Some((_, names, summaries)) => {
                names.push(name);
                summaries.push(summary);
            }
            None => groups.push((main, vec![name], vec![summary])),
        }
    }
    let describe = |(_, names, summaries): (_, Vec<String>, Vec<&LimitSummary>)| {
        let summary = LimitSummary::combine(summaries)?;
        let (limited, prefix) = if names.len() == count {
            ("Limited by".to_owned(), String::new())
        } else {
            let names = join_list(&names);
            (format!("{names} limited by"), format!("{names}: "))
        };
        let sentences = [summary.text.as_str(), summary.advice.as_str()];
        let sentences: Vec<_> = sentences.into_iter().filter(|it| !it.is_empty()).collect();
        Some(LimitLines {
            shares: format!("{limited}: {}", summary.shares_text()),
            advice: (!sentences.is_empty()).then(|| prefix + &sentences.join(" ")),
        })
    };
    groups.into_iter().filter_map(describe).collect()
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::LimitEvidence;

    use super::*;

    fn make_summary(main: LimitClass, other: LimitClass, percent: f64) -> LimitSummary {
        let evidence = LimitEvidence {
            cpu_percent: Some(100.0),
            tensor_percent: Some(88.0),
            ..LimitEvidence::default()
        };
        let shares = [(main, percent), (other, 100.0 - percent)];
        LimitSummary::new(10_000, shares, |_| evidence).unwrap()
    }

    fn describe(gpus: &[Option<LimitSummary>]) -> Vec<(String, Option<String>)> {
        let names = (0..).map(|index| format!("GPU {index}"));
        let lines = describe_limits(names.zip(gpus.iter().map(Option::as_ref)));
        lines.into_iter().map(|it| (it.shares, it.advice)).collect()
    }

    #[test]
    fn gpus_with_same_main_cause_are_described_together() {
        let host = |percent| Some(make_summary(LimitClass::Host, LimitClass::Tensor, percent));
        let tensor = Some(make_summary(LimitClass::Tensor, LimitClass::Host, 80.0));
        let advice = "A process uses 100 % of a core while the GPU waits. Prepare data in worker \
                      processes or on the GPU, and start the next step before its result is needed.";
        assert_eq!(
            describe(&[host(60.0), host(70.0)]),
            [(
                "Limited by: host-bound 65 %, tensor-bound 35 %".to_owned(),
                Some(advice.to_owned())
            )]
        );
        let lines = describe(&[host(60.0), tensor, host(60.0)]);
        assert_eq!(lines.len(), 2);
        assert_eq!(
            lines[0],
            (
                "GPU 0 and GPU 2 limited by: host-bound 60 %, tensor-bound 40 %".to_owned(),
                Some(format!("GPU 0 and GPU 2: {advice}"))
            )
        );
        assert!(
            lines[1]
                .0
                .starts_with("GPU 1 limited by: tensor-bound 80 %"),
            "{lines:?}"
        );
    }

    #[test]
    fn gpu_without_limits_is_not_described() {
        assert_eq!(describe(&[None]), []);
        let idle = Some(make_summary(LimitClass::Idle, LimitClass::Host, 100.0));
        assert_eq!(
            describe(&[None, idle]),
            [(
                "GPU 1 limited by: idle 100 %".to_owned(),
                Some("GPU 1: No kernels or copies run.".to_owned())
            )]
        );
    }
}
