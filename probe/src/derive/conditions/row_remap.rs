//! Rows of memory wait to be replaced, or cannot be.

use super::{
    rule::{Matter, PlainRule, Rule, View},
    spell::Sight,
};
use crate::model::{ConditionKind, Severity};

pub(super) fn rule() -> impl Rule {
    PlainRule::new(0, 0, look)
}

fn look(view: &View<'_>, _: bool) -> Sight<Matter> {
    let Some(rows) = view.detail(|details| &details.remapped_rows) else { return Sight::Unknown };
    let (severity, text) = match (rows.failed, rows.pending) {
        (false, false) => return Sight::Clear,
        (true, _) => (Severity::Critical, "Row remapping failed: no spare rows are left. Replace the board."),
        (false, true) => (Severity::Warning, "Row remapping pending: reset the GPU when it is idle."),
    };
    let kind = ConditionKind::RowRemap { pending: rows.pending, failed: rows.failed };
    Sight::Seen(Matter { severity, text: text.to_owned(), kind })
}

#[cfg(test)]
mod tests {
    use super::super::stage::{Stage, told};
    use super::*;
    use crate::model::{GpuDetails, Reading, RemappedRows};

    #[test]
    fn rows_that_wait_are_a_warning_and_rows_that_cannot_be_replaced_are_worse() {
        let rows = |pending, failed| {
            move |details: &mut GpuDetails| {
                let rows = RemappedRows { correctable: 1, uncorrectable: 0, pending, failed, spare: None };
                details.remapped_rows = Reading::Now(rows);
            }
        };
        let mut stage = Stage::new();
        stage.show_details(1, rows(false, false)).show_details(1, rows(true, false));
        assert_eq!(stage.only().severity, Severity::Warning);
        stage.show_details(1, rows(true, true));
        assert_eq!(stage.only().kind, ConditionKind::RowRemap { pending: true, failed: true });
        assert_eq!(stage.only().severity, Severity::Critical);
        stage.show_details(1, rows(false, false));
        assert_eq!(stage.news(), [told(2, "+row_remap"), told(4, "-row_remap")]);
    }
}
