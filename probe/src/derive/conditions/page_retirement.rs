//! Pages of memory wait to be taken out of use.

use super::{
    rule::{Matter, PlainRule, Rule, View},
    spell::Sight,
};
use crate::model::{ConditionKind, Severity};

pub(super) fn rule() -> impl Rule {
    PlainRule::new(0, 0, look)
}

fn look(view: &View<'_>, _: bool) -> Sight<Matter> {
    match view.detail(|details| &details.retired_pages) {
        None => Sight::Unknown,
        Some(pages) if !pages.pending => Sight::Clear,
        Some(_) => Sight::Seen(Matter {
            severity: Severity::Warning,
            text: "Page retirement pending: reset the GPU when it is idle.".to_owned(),
            kind: ConditionKind::PageRetirementPending,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::stage::{Stage, told};
    use crate::model::{GpuDetails, Reading, RetiredPages};

    #[test]
    fn it_lasts_while_pages_wait() {
        let pages = |pending| {
            move |details: &mut GpuDetails| {
                details.retired_pages = Reading::Now(RetiredPages { single_bit: 2, double_bit: 0, pending });
            }
        };
        let mut stage = Stage::new();
        stage.show_details(1, pages(false)).show_details(1, pages(true)).show_details(1, pages(false));
        let news = [told(2, "+page_retirement_pending"), told(3, "-page_retirement_pending")];
        assert_eq!(stage.news(), news);
    }
}
