//! Little memory is left.

use super::{
    rule::{Matter, PlainRule, Rule, View},
    spell::Sight,
    words,
};
use crate::model::{ConditionKind, Severity};

const GIB: u64 = 1 << 30;

/// An allocation that is given back at once is no concern.
const BEGIN_AFTER_MS: u64 = 3_000;

const END_AFTER_MS: u64 = 10_000;

pub(super) fn rule() -> impl Rule {
    PlainRule::new(BEGIN_AFTER_MS, END_AFTER_MS, look)
}

/// Less than 3 % and less than 2 GiB begin it, more than 5 % or more than 3 GiB end it.
fn look(view: &View<'_>, lasts: bool) -> Sight<Matter> {
    let memory = &view.sample.memory;
    let Some((&free_bytes, &total_bytes)) = view.fresh(&memory.free_bytes).zip(memory.total_bytes.value()) else {
        return Sight::Unknown;
    };
    let (share, bytes) = if lasts { (0.05, 3 * GIB) } else { (0.03, 2 * GIB) };
    if free_bytes as f64 >= total_bytes as f64 * share || free_bytes >= bytes {
        return Sight::Clear;
    }
    Sight::Seen(Matter {
        severity: Severity::Warning,
        text: format!(
            "Of {} of memory, {} are left: the next allocation may fail.",
            words::bytes(total_bytes),
            words::bytes(free_bytes)
        ),
        kind: ConditionKind::MemoryNearlyFull { free_bytes, total_bytes },
    })
}

#[cfg(test)]
mod tests {
    use super::super::stage::{Stage, told};
    use super::*;
    use crate::model::{GpuSample, Reading};

    fn free(mib: u64) -> impl Fn(&mut GpuSample) {
        move |sample| sample.memory.free_bytes = Reading::Now(mib << 20)
    }

    #[test]
    fn it_begins_below_two_gib_and_ends_above_three() {
        let mut stage = Stage::new();
        stage.show(60, free(2_100)).show(2, free(100)).show(60, free(2_100));
        assert_eq!(stage.news(), []);
        stage.show(60, free(1_000));
        assert_eq!(stage.news(), [told(126, "+memory_nearly_full")]);
        assert_eq!(stage.only().text, "Of 80.0 GiB of memory, 1000 MiB are left: the next allocation may fail.");
        stage.show(60, free(2_900));
        assert_eq!(stage.news(), []);
        stage.show(60, free(3_100));
        assert_eq!(stage.news(), [told(253, "-memory_nearly_full")]);
    }

    #[test]
    fn on_a_small_board_the_share_counts() {
        let mut stage = Stage::new();
        let small = |mib| {
            move |sample: &mut GpuSample| {
                sample.memory.total_bytes = Reading::Now(8 * GIB);
                free(mib)(sample);
            }
        };
        stage.show(60, small(300));
        assert_eq!(stage.news(), []);
        stage.show(60, small(200)).show(60, small(300));
        assert_eq!(stage.news(), [told(64, "+memory_nearly_full")]);
        stage.show(60, small(500));
        assert_eq!(stage.news().len(), 1);
    }
}
