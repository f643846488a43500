//! The division of sums into parts, for tiles that would leave multiprocessors idle. The code for
//! the GPU is in `parts.cuh`.

use super::kernel_select::{HOPPER_COPIED_ROWS, KernelChoice};
use crate::protocol::Shape;

/// The maximum number of parts of a tile. More parts take longer to add than they save.
const MOST_PARTS: u64 = 16;
/// The size of the flags that `parts.cuh` has before the parts: 32 bits for each part.
const FLAGS_BYTES: u64 = 16 << 10;

/// The properties of a kernel that can divide sums.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cuttable {
    /// The number of steps of a sum that cannot be divided.
    pub(super) slab: u32,
    /// The time in which a block stores or adds a part, in steps of the sum.
    pub(super) part_steps: f64,
    pub(super) sum_bytes: u64,
}

/// A division of tiles: the number of whole tiles, and the number of parts of each other tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) whole: u64,
    pub(super) parts: u64,
}

impl Cut {
    pub(super) fn pieces(self, tiles: u64) -> u64 {
        self.whole + (tiles - self.whole) * self.parts
    }
}

impl KernelChoice {
    pub(super) fn tiles(&self, shape: Shape) -> u64 {
        shape.rows.div_ceil(u64::from(self.tile.0)) * shape.columns.div_ceil(u64::from(self.tile.1))
    }

    fn elements(&self) -> u64 {
        u64::from(self.tile.0) * u64::from(self.tile.1)
    }

    /// Returns the fastest division: of the tiles in the last round, or of no tiles.
    pub(super) fn cut(&self, shape: Shape, multiprocessors: u32) -> Cut {
        let tiles = self.tiles(shape);
        let none = Cut {
            whole: tiles,
            parts: 1,
        };
        let Some(Cuttable { slab, .. }) = self.cuttable else {
            return none;
        };
        let rest = tiles % u64::from(multiprocessors.max(1));
        let most = MOST_PARTS
            .min(shape.depth.div_ceil(u64::from(slab)))
            .min(FLAGS_BYTES / 4 / rest.max(1));
        let cuts = (2..=most).filter(|_| rest > 0).map(|parts| Cut {
            whole: tiles - rest,
            parts,
        });
        let time = |cut: &Cut| self.time_of(*cut, shape, multiprocessors);
        std::iter::once(none)
            .chain(cuts)
            .min_by(|a, b| time(a).total_cmp(&time(b)))
            .unwrap_or(none)
    }

    /// Returns the time of the fastest division, relative to the time in which an element is
    /// multiplied.
    pub(super) fn time(&self, shape: Shape, multiprocessors: u32) -> f64 {
        self.time_of(self.cut(shape, multiprocessors), shape, multiprocessors)
    }

    /// Returns the time of the product. Multiprocessors without a piece in a round wait for the
    /// others, and blocks on the same multiprocessor share its time.
    ///
    /// Both matrices are read at the same time. Near the memory's bandwidth, multiplying and
    /// reading slow each other down.
    fn time_of(&self, cut: Cut, shape: Shape, multiprocessors: u32) -> f64 {
        let rounds = |pieces: u64| pieces.div_ceil(u64::from(multiprocessors.max(1)));
        let pieces_of_parts = (self.tiles(shape) - cut.whole) * cut.parts;
        let (mut whole_rounds, part_rounds) = (rounds(cut.whole), rounds(pieces_of_parts));
        // If there are enough blocks, the GPU gives each multiprocessor two consecutive blocks at
        // once. In the last round of whole tiles, some multiprocessors then have two of them and
        // others only parts. Measured on an H100 and an H200.
        if pieces_of_parts >= u64::from(multiprocessors) {
            whole_rounds = whole_rounds.next_multiple_of(self.blocks);
        }
        let (whole_rounds, part_rounds) = (whole_rounds as f64, part_rounds as f64);
        let (part_steps, added_steps) = self.cuttable.map_or(
            (0.0, 0.0),
            |Cuttable {
                 slab, part_steps, ..
             }| {
                let slab = u64::from(slab);
                (
                    (shape.depth.div_ceil(slab).div_ceil(cut.parts) * slab) as f64,
                    part_steps * cut.parts as f64,
                )
            },
        );
        let step_time = self.step_time(shape);
        let multiplying =
            (whole_rounds * shape.depth as f64 + part_rounds * part_steps) * step_time;
        let adding = part_rounds * added_steps * step_time;
        let results = (whole_rounds + part_rounds) * self.result_steps + self.last_result_steps;
        (multiplying.powi(4) + self.reading_time.powi(4)).powf(0.25)
            + adding
            + results * self.elements() as f64
    }

    /// Returns the time of a step of a tile: the time to multiply it or to load its lines,
    /// whichever is longer.
    fn step_time(&self, shape: Shape) -> f64 {
        let rows =
            u64::from(self.tile.0).min(shape.rows.next_multiple_of(u64::from(HOPPER_COPIED_ROWS)));
        let lines = rows + u64::from(self.tile.1);
        (self.elements() as f64 / self.efficiency).max(lines as f64 * self.line_time)
    }

    /// Returns the memory that the parts of a product need; `None` if the kernel does not divide
    /// sums.
    pub(super) fn parts_bytes(&self, shape: Shape, Cut { whole, parts }: Cut) -> Option<u64> {
        let Cuttable { sum_bytes, .. } = self.cuttable?;
        Some(FLAGS_BYTES + (self.tiles(shape) - whole) * parts * self.elements() * sum_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::kernel_select::{HOPPER, candidates},
        *,
    };
    use crate::protocol::Dtype;

    fn of(kernel: &str, dtype: Dtype) -> KernelChoice {
        candidates(dtype, HOPPER)
            .into_iter()
            .find(|choice| choice.kernel == kernel)
            .unwrap()
    }

    #[test]
    fn tiles_of_a_last_round_are_cut_where_that_is_worth_it() {
        let choice = of("matmul_bf16_128x128", Dtype::Bf16);
        let cut = |rows, columns, depth| {
            choice.cut(
                Shape {
                    rows,
                    columns,
                    depth,
                },
                132,
            )
        };
        // The last round has 36 of 960 tiles. Divided into thirds, they take a third of a round.
        assert_eq!(
            cut(5000, 3000, 7000),
            Cut {
                whole: 924,
                parts: 3
            }
        );
        // The first product has too short sums, and the second one has no last round.
        assert_eq!(
            cut(5000, 3000, 64),
            Cut {
                whole: 960,
                parts: 1
            }
        );
        assert_eq!(
            cut(128 * 132, 128, 7000),
            Cut {
                whole: 132,
                parts: 1
            }
        );
        // There are fewer tiles than multiprocessors.
        assert_eq!(cut(64, 8192, 8192), Cut { whole: 0, parts: 2 });
    }

    #[test]
    fn every_cut_has_a_flag_and_a_slab_for_each_part() {
        for dtype in [Dtype::Bf16, Dtype::Fp8, Dtype::Fp32, Dtype::Fp64] {
            for choice in candidates(dtype, HOPPER) {
                for (rows, depth, multiprocessors) in [
                    (1, 1, 1),
                    (1, 1 << 20, 132),
                    (3000, 100, 1000),
                    (9999, 12345, 7),
                ] {
                    let shape = Shape {
                        rows,
                        columns: rows,
                        depth,
                    };
                    let cut = choice.cut(shape, multiprocessors);
                    let (tiles, slabs) = (
                        choice.tiles(shape),
                        depth.div_ceil(u64::from(choice.cuttable.unwrap().slab)),
                    );
                    assert!(
                        cut.whole <= tiles && (1..=slabs).contains(&cut.parts),
                        "{cut:?}"
                    );
                    assert!(
                        (tiles - cut.whole) * cut.parts * 4 <= FLAGS_BYTES,
                        "{cut:?}"
                    );
                    assert!(cut.parts == 1 || cut.pieces(tiles) > tiles, "{cut:?}");
                }
            }
        }
    }
}
