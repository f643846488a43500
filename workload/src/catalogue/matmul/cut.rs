//! The division of sums into parts, for tiles that would leave multiprocessors idle. `parts.cuh`
//! contains the code for the GPU.

use super::kernel_select::{HOPPER_COPIED_ROWS, KernelChoice};
use crate::protocol::Shape;

/// The maximum number of parts of a tile. Adding more parts would take longer than they save.
const MAX_PARTS: u64 = 16;
/// The size of the flags that `parts.cuh` stores before the parts, in bytes. Each part has 32 bits.
const FLAGS_BYTES: u64 = 16 << 10;

/// The properties of a kernel that can divide sums into parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct CutProperties {
    /// The number of steps in a slab. Sums can only be divided between slabs.
    pub(super) slab: u32,
    /// The time that a block needs to store or add a part, in steps of the sum.
    pub(super) part_steps: f64,
    pub(super) sum_bytes: u64,
}

/// A division of a product's tiles: the number of tiles that stay whole, and the number of parts of
/// each remaining tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TileDivision {
    pub(super) whole: u64,
    pub(super) parts: u64,
}

impl TileDivision {
    pub(super) fn count_pieces(self, tiles: u64) -> u64 {
        self.whole + (tiles - self.whole) * self.parts
    }
}

impl KernelChoice {
    pub(super) fn count_tiles(&self, shape: Shape) -> u64 {
        shape.rows.div_ceil(u64::from(self.tile.0)) * shape.columns.div_ceil(u64::from(self.tile.1))
    }

    fn elements_per_tile(&self) -> u64 {
        u64::from(self.tile.0) * u64::from(self.tile.1)
    }

    /// Returns the fastest division. Either the tiles of the last round are divided into parts, or
    /// no tiles are.
    pub(super) fn fastest_division(&self, shape: Shape, multiprocessors: u32) -> TileDivision {
        let tiles = self.count_tiles(shape);
        let none = TileDivision {
            whole: tiles,
            parts: 1,
        };
        let Some(CutProperties { slab, .. }) = self.cuttable else {
            return none;
        };
        let rest = tiles % u64::from(multiprocessors.max(1));
        let most = MAX_PARTS
            .min(shape.depth.div_ceil(u64::from(slab)))
            .min(FLAGS_BYTES / 4 / rest.max(1));
        let cuts = (2..=most).filter(|_| rest > 0).map(|parts| TileDivision {
            whole: tiles - rest,
            parts,
        });
        let time = |cut: &TileDivision| self.division_time(*cut, shape, multiprocessors);
        std::iter::once(none)
            .chain(cuts)
            .min_by(|a, b| time(a).total_cmp(&time(b)))
            .unwrap_or(none)
    }

    /// Returns the time of the product with the fastest division, in units of the time to multiply
    /// one element.
    pub(super) fn fastest_time(&self, shape: Shape, multiprocessors: u32) -> f64 {
        self.division_time(
            self.fastest_division(shape, multiprocessors),
            shape,
            multiprocessors,
        )
    }

    /// Returns the time of the product with the division `cut`. Multiprocessors without a piece in
    /// a round wait for the others, and blocks on the same multiprocessor share its time.
    ///
    /// Both matrices are read at the same time. Near the memory bandwidth, multiplying and reading
    /// slow each other down.
    fn division_time(&self, cut: TileDivision, shape: Shape, multiprocessors: u32) -> f64 {
        let rounds = |pieces: u64| pieces.div_ceil(u64::from(multiprocessors.max(1)));
        let pieces_of_parts = (self.count_tiles(shape) - cut.whole) * cut.parts;
        let (mut whole_rounds, part_rounds) = (rounds(cut.whole), rounds(pieces_of_parts));
        // If there are enough blocks, the GPU assigns two consecutive blocks to each multiprocessor
        // at a time. In the last round of whole tiles, some multiprocessors then have two whole
        // tiles, and others only parts. This was measured on an H100 and an H200.
        if pieces_of_parts >= u64::from(multiprocessors) {
            whole_rounds = whole_rounds.next_multiple_of(self.blocks);
        }
        let (whole_rounds, part_rounds) = (whole_rounds as f64, part_rounds as f64);
        let (part_steps, added_steps) = self.cuttable.map_or(
            (0.0, 0.0),
            |CutProperties {
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
            + results * self.elements_per_tile() as f64
    }

    /// Returns the time for one step of a tile's sums: the time to multiply or the time to load the
    /// lines, whichever is longer.
    fn step_time(&self, shape: Shape) -> f64 {
        let rows =
            u64::from(self.tile.0).min(shape.rows.next_multiple_of(u64::from(HOPPER_COPIED_ROWS)));
        let lines = rows + u64::from(self.tile.1);
        (self.elements_per_tile() as f64 / self.efficiency).max(lines as f64 * self.line_time)
    }

    /// Returns the memory in bytes for a product's parts, or `None` if the kernel does not divide
    /// sums.
    pub(super) fn parts_bytes(
        &self,
        shape: Shape,
        TileDivision { whole, parts }: TileDivision,
    ) -> Option<u64> {
        let CutProperties { sum_bytes, .. } = self.cuttable?;
        Some(
            FLAGS_BYTES
                + (self.count_tiles(shape) - whole) * parts * self.elements_per_tile() * sum_bytes,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::kernel_select::{HOPPER, list_candidates},
        *,
    };
    use crate::protocol::Dtype;

    fn find_choice(kernel: &str, dtype: Dtype) -> KernelChoice {
        list_candidates(dtype, HOPPER)
            .into_iter()
            .find(|choice| choice.kernel == kernel)
            .unwrap()
    }

    #[test]
    fn last_round_is_divided_if_faster() {
        let choice = find_choice("matmul_bf16_128x128", Dtype::Bf16);
        let cut = |rows, columns, depth| {
            choice.fastest_division(
                Shape {
                    rows,
                    columns,
                    depth,
                },
                132,
            )
        };
        // The last round has 36 of the 960 tiles. Divided into thirds, they take a third of a
        // round.
        assert_eq!(
            cut(5000, 3000, 7000),
            TileDivision {
                whole: 924,
                parts: 3
            }
        );
        // The sums of the first product are too short to be divided. The tiles of the second
        // product fill all rounds.
        assert_eq!(
            cut(5000, 3000, 64),
            TileDivision {
                whole: 960,
                parts: 1
            }
        );
        assert_eq!(
            cut(128 * 132, 128, 7000),
            TileDivision {
                whole: 132,
                parts: 1
            }
        );
        // There are fewer tiles than multiprocessors, so all tiles are divided.
        assert_eq!(cut(64, 8192, 8192), TileDivision { whole: 0, parts: 2 });
    }

    #[test]
    fn every_part_has_flag_and_slab() {
        for dtype in [Dtype::Bf16, Dtype::Fp8, Dtype::Fp32, Dtype::Fp64] {
            for choice in list_candidates(dtype, HOPPER) {
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
                    let cut = choice.fastest_division(shape, multiprocessors);
                    let (tiles, slabs) = (
                        choice.count_tiles(shape),
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
                    assert!(cut.parts == 1 || cut.count_pieces(tiles) > tiles, "{cut:?}");
                }
            }
        }
    }
}
