//! How wide each part of a GPU's line is.

use gpumon_probe::model::GpuSample;
use unicode_width::UnicodeWidthStr;

use super::{
    further::Further,
    row::{memory, power},
};
use crate::{
    describe::{self, LONGEST, Phrase},
    top::model::Model,
};

pub(super) const GAP: usize = 2;
pub(super) const TEMPERATURE: usize = 6;
/// Less of a bar, or of a line, tells nothing.
const SHORTEST_BAR: usize = 5;
const SHORTEST_SPARK: usize = 8;
/// The drawings have so much before there are further readings.
const DRAWN: usize = 24;

/// The widths of the parts. They depend on the room and on what the boards have, so that nothing moves with the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Widths {
    pub(super) name: usize,
    pub(super) busy: usize,
    pub(super) spark: usize,
    pub(super) memory: usize,
    pub(super) bar: usize,
    pub(super) power: usize,
    /// The further readings that have room.
    pub(super) further: [Option<Further>; Further::ALL.len()],
}

impl Widths {
    /// `widest` has the parts as wide as they would like to be.
    pub(super) fn new(columns: usize, widest: Self, is_named_above: bool) -> Self {
        let mut widths = Self {
            name: 0,
            spark: 0,
            bar: 0,
            further: [None; Further::ALL.len()],
            ..widest
        };
        let least = if columns < 60 { 6 } else { 10 };
        let beyond_words = columns.saturating_sub(widths.taken() + GAP + Phrase::SHORT);
        widths.name = widest.name.min(beyond_words.clamp(least, LONGEST));
        // Where it is narrow, power is in its chart, and the name of boards that are all alike above.
        if widths.taken() + Phrase::SHORT > columns {
            widths.power = 0;
        }
        if is_named_above && widths.taken() + Phrase::SHORT > columns {
            widths.name = 0;
        }
        // Words come first; of what is left beyond them and further readings, they get half, and the two drawings share
        // the rest.
        let rest = columns.saturating_sub(widths.taken() + Phrase::SHORT);
        widths.further = fitting(widest.further, rest.saturating_sub(DRAWN) * 2 / 3);
        let rest = columns.saturating_sub(widths.taken() + Phrase::SHORT);
        let drawn = if rest < DRAWN {
            rest
        } else {
            (DRAWN + (rest - DRAWN) / 2).min(64)
        };
        if drawn >= SHORTEST_BAR + SHORTEST_SPARK + 2 * GAP {
            widths.spark = (drawn * 2 / 5).max(SHORTEST_SPARK);
            widths.bar = drawn - widths.spark - 2 * GAP;
        } else if drawn >= SHORTEST_BAR + GAP {
            widths.bar = drawn - GAP;
        }
        widths
    }

    fn taken(&self) -> usize {
        let parts = [
            self.name,
            self.busy,
            self.spark,
            self.memory,
            self.bar,
            TEMPERATURE - 1,
            self.power,
        ];
        let further = self
            .further
            .iter()
            .flatten()
            .map(|further| further.width() + GAP);
        3 + parts
            .into_iter()
            .map(Self::with_gap)
            .chain(further)
            .sum::<usize>()
    }

    /// The columns of a part, which is there where it has any, with those behind it.
    pub(super) fn with_gap(width: usize) -> usize {
        if width > 0 { width + GAP } else { 0 }
    }

    /// The parts as wide as what they may have to hold.
    pub(super) fn widest(all: &[GpuSample], model: &Model) -> Self {
        let most = |width: &dyn Fn(&GpuSample) -> usize| all.iter().map(width).max().unwrap_or(0);
        // In use may be all that there is, which has a digit more where it is aligned on its point.
        let all_memory = |gpu: &GpuSample| {
            gpu.memory
                .total_bytes
                .value()
                .map(|bytes| describe::total(*bytes).width())
        };
        let limit = |gpu: &GpuSample| {
            gpu.power
                .limit_watts
                .value()
                .map(|watts| format!("{watts:.0}").width())
        };
        let has_other = all.iter().any(describe::is_sm_activity);
        Self {
            name: most(&|gpu| model.name(gpu.index).width()),
            busy: if has_other {
                describe::BUSY_WIDTH_WITH_SM
            } else {
                describe::BUSY_WIDTH
            },
            spark: 0,
            memory: most(&|gpu| {
                let all = all_memory(gpu).map_or(
                    0,
                    |all| if all > 3 { 2 * all } else { 2 * all + 2 } + "/ GiB".len(),
                );
                all.max(memory(gpu).width())
            }),
            bar: 0,
            power: most(&|gpu| {
                limit(gpu)
                    .map_or(0, |limit| 2 * limit + "/ W".len())
                    .max(power(gpu).width())
            }),
            further: Further::ALL
                .map(|further| further.is_supported(all, model).then_some(further)),
        }
    }
}

/// Those at the head that fit into so many columns.
fn fitting(
    all: [Option<Further>; Further::ALL.len()],
    mut columns: usize,
) -> [Option<Further>; Further::ALL.len()] {
    all.map(|further| {
        let further = further?;
        let left = columns.checked_sub(further.width() + GAP);
        // What is less important does not take the place of what had none.
        columns = left.unwrap_or(0);
        left.map(|_| further)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_fit_at_any_width_and_the_first_phrase_is_whole_from_80_columns_on() {
        let widest = Widths {
            name: 30,
            busy: 5,
            spark: 0,
            memory: 13,
            bar: 0,
            power: 9,
            further: Further::ALL.map(Some),
        };
        for columns in 40..400 {
            let widths = Widths::new(columns, widest, false);
            let taken = widths.taken();
            assert!(columns < 60 || taken <= columns, "{taken} of {columns}");
            assert!(
                columns < 80 || columns - taken >= Phrase::SHORT,
                "{} left of {columns}",
                columns - taken
            );
        }
        let shown = |columns| {
            Widths::new(columns, widest, false)
                .further
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
        };
        assert_eq!(shown(80), []);
        for columns in 80..250 {
            assert!(
                shown(columns + 1).starts_with(&shown(columns)),
                "the order stays at {columns}"
            );
        }
        assert_eq!(shown(250), Further::ALL);
        let short = Widths::new(80, Widths { name: 4, ..widest }, true);
        assert_eq!(
            (short.spark, short.bar),
            (0, SHORTEST_BAR),
            "the curve goes first"
        );
        let narrow = Widths::new(60, Widths { name: 4, ..widest }, true);
        assert!(
            60 - narrow.taken() >= Phrase::SHORT,
            "power and name go before words do: {narrow:?}"
        );
    }
}
