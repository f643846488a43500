//! Memory errors were not corrected.

use super::{
    rule::{Matter, PlainRule, Rule, View},
    spell::Sight,
};
use crate::model::{ConditionKind, Severity};

pub(super) fn rule() -> impl Rule {
    PlainRule::new(0, 0, look)
}

fn look(view: &View<'_>, _: bool) -> Sight<Matter> {
    match view.detail(|details| &details.ecc.volatile.uncorrected_total) {
        None => Sight::Unknown,
        Some(0) => Sight::Clear,
        Some(&count) => {
            let errors = if count == 1 { "error" } else { "errors" };
            Sight::Seen(Matter {
                severity: Severity::Critical,
                text: format!(
                    "{count} uncorrectable memory {errors} since the driver was loaded: results may be wrong. Reset the \
                     GPU when it is idle."
                ),
                kind: ConditionKind::EccUncorrected { count },
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stage::{Stage, told};
    use super::*;
    use crate::model::Reading;

    #[test]
    fn it_lasts_until_the_driver_counts_anew() {
        let mut stage = Stage::new();
        let errors = |count| {
            move |details: &mut crate::model::GpuDetails| {
                details.ecc.volatile.uncorrected_total = Reading::Now(count);
            }
        };
        stage.show_details(5, errors(0)).show_details(5, errors(1));
        assert_eq!(stage.only().severity, Severity::Critical);
        assert!(stage.only().text.starts_with("1 uncorrectable memory error since"), "{}", stage.only().text);
        stage.show_details(1, errors(3));
        assert_eq!(stage.only().kind, ConditionKind::EccUncorrected { count: 3 });
        stage.show_details(1, errors(0));
        assert_eq!(stage.news(), [told(6, "+ecc_uncorrected"), told(12, "-ecc_uncorrected")]);
    }
}
