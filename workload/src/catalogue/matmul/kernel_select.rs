//! The selection of the fastest kernel for a matrix product on a GPU, and the division of its sums.

use super::values;
use crate::{
    cuda::Code,
    kernels,
    protocol::{Dtype, Shape},
};

/// Padded matrices have sizes that are multiples of this number. It is a multiple of the sides of
/// all tiles, except for tiles with 192 columns. So only the kernel for those tiles has to check
/// where a row ends.
const PADDING_MULTIPLE: u64 = 256;
/// The depth of a slab: the number of products of each sum that `matmul_fp32.cu` loads at a time.
/// Shared memory holds `FP32_STAGES` slabs.
const FP32_SLAB: u32 = 16;
const FP32_STAGES: u32 = 3;
/// The time to store a part of a 32-bit sum, in steps of the sum. `HOPPER_FP64_PART_STEPS` is the
/// time for a 64-bit sum.
const FP32_PART_STEPS: f64 = 12.0;
const HOPPER_FP64_PART_STEPS: f64 = 44.0;
/// The time to store a part of a sum of one-byte elements, in steps of the sum. For wider elements,
/// this number is divided by their size in bytes, because their steps take longer.
const HOPPER_PART_STEPS: f64 = 800.0;
/// The number of bytes that the copy engine loads from each row of a tile. The rows of a slab in
/// shared memory have the same size.
const HOPPER_ROW_BYTES: u32 = 128;
/// The size of the shared memory in which results of narrow types are assembled before they are
/// written, in bytes.
const HOPPER_RESULT_BYTES: u32 = 32 << 10;
/// The maximum number of rows of A that `matmul_hopper.cu` loads at a time.
pub(super) const HOPPER_COPIED_ROWS: u32 = 64;
/// The time to write a tile, in steps of the sum, if results are as wide as the inputs. Measured on
/// an H100 and an H200.
const HOPPER_RESULT_STEPS: f64 = 250.0;
/// The share of the last tile's writing time during which nothing is multiplied, if warpgroups take
/// turns. `HOPPER_RESULT_BEFORE` is this share for each earlier tile, if 16-bit results are written
/// while the next tile is computed.
const HOPPER_LAST_RESULT: f64 = 0.4;
const HOPPER_RESULT_BEFORE: f64 = 0.08;
/// The efficiency of tiles with 192 columns. They are as fast as tiles with 256 columns, but need
/// more energy per operation.
const HOPPER_192_EFFICIENCY: f64 = 0.97;
/// The time in which an H200 loads a row or column of a tile, as the number of elements of a narrow
/// type that it multiplies in this time. `HOPPER_LINE_FROM_MEMORY` is the share of the loading time
/// that depends on the memory bandwidth. Both were fitted to an H100 and an H200.
const HOPPER_LINE_ELEMENTS: f64 = 69.0;
const HOPPER_LINE_FROM_MEMORY: f64 = 0.31;
const H200_BYTES_PER_SECOND: f64 = 4.9e12;
/// The share of the memory bandwidth that is reached when both matrices are read. Fitted to an H100
/// and an H200.
const READING_EFFICIENCY: f64 = 0.75;
/// The alignment in bytes of the stages in shared memory. Each stage has two barriers, which need
/// `HOPPER_BARRIER_BYTES` together.
const HOPPER_ALIGNMENT_BYTES: u32 = 1024;
const HOPPER_BARRIER_BYTES: u32 = 2 * 8;

pub(in crate::catalogue) const AMPERE: (u32, u32) = (8, 0);
const ADA: (u32, u32) = (8, 9);
pub(in crate::catalogue) const HOPPER: (u32, u32) = (9, 0);

#[derive(Debug, Clone)]
pub(super) struct KernelChoice {
    pub(super) code: Code,
    pub(super) kernel: String,
    /// The number of rows and columns that a block computes at a time.
    pub(super) tile: (u32, u32),
    pub(super) threads: u32,
    /// The speed for large products, relative to the fastest kernel of the same kind.
    pub(super) efficiency: f64,
    /// The minimum time in which one step loads a row or column of a tile. The unit is the time to
    /// multiply one element.
    pub(super) line_time: f64,
    /// The time in each round during which a block only writes a tile and does not multiply. The
    /// unit is one step of the sum.
    pub(super) result_steps: f64,
    /// The additional time to write the last tile, in steps of the sum.
    pub(super) last_result_steps: f64,
    /// The number of blocks that run on a multiprocessor at the same time.
    pub(super) blocks: u64,
    /// The time to read both matrices from memory, in units of the time to multiply one element; 0
    /// if the matrices fit into the cache.
    pub(super) reading_time: f64,
    /// The properties needed to divide sums into parts; `None` if the kernel does not divide sums.
    pub(super) cuttable: Option<CutProperties>,
    /// The dynamic shared memory in bytes, which is added to the shared memory declared in the
    /// kernel's code.
    pub(super) shared_bytes: u32,
    pub(super) inputs: Inputs,
    pub(super) layout: Layout,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inputs {
    Addresses,
    /// Tiles that the copy engine loads. Each block stays resident and computes one tile after
    /// another.
    Tiles,
}

/// The layout of A and B in memory. B's columns are treated like A's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// The elements of a row are next to each other.
    RowByRow,
    /// The elements that are multiplied in one step are next to each other. There is one such
    /// element in each row.
    StepByStep,
}

impl Layout {
    /// Returns the distances in elements from one row to the next, and from one step to the next.
    pub(super) fn row_and_step_strides(self, pitch: u64) -> (u64, u64) {
        match self {
            Self::RowByRow => (pitch, 1),
            Self::StepByStep => (1, pitch),
        }
    }
}

/// Returns the compute capability that a type requires.
pub(crate) fn required_capability(dtype: Dtype) -> (u32, u32) {
    match dtype {
        Dtype::Fp64 | Dtype::Fp32 => (6, 0),
        Dtype::Tf32 | Dtype::Fp16 | Dtype::Bf16 | Dtype::Int8 | Dtype::Bytes => AMPERE,
        Dtype::Fp8 => ADA,
    }
}

/// Returns the number of rows that a matrix with `n` rows has in memory.
pub(super) fn padded_row_count(n: u64) -> u64 {
    n.max(1)
        .div_ceil(PADDING_MULTIPLE)
        .saturating_mul(PADDING_MULTIPLE)
}

/// The properties of a GPU that determine which kernel is fastest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chip {
    pub(super) capability: (u32, u32),
    pub(super) multiprocessors: u32,
    /// Memory bandwidth; `None` if the driver does not report it.
    pub(super) bytes_per_second: Option<f64>,
    /// The peak rate of the whole GPU for the product's type; `None` if the table of peaks does not
    /// contain the GPU.
    pub(super) operations_per_second: Option<f64>,
    /// The size of the L2 cache; 0 if the driver does not report it.
    pub(super) cache_bytes: u64,
}

impl Chip {
    /// Returns the time to read both matrices from memory. The unit is the time in which a
    /// multiprocessor multiplies one element. Returns 0 if both matrices fit into the cache,
    /// because repeated products then read them from there.
    fn matrix_read_time(&self, dtype: Dtype, shape: Shape) -> f64 {
        let bytes = (shape.rows + shape.columns)
            .saturating_mul(shape.depth)
            .saturating_mul(dtype.bytes());
        let (Some(bytes_per_second), Some(operations_per_second)) =
            (self.bytes_per_second, self.operations_per_second)
        else {
            return 0.0;
        };
        if bytes <= self.cache_bytes {
            return 0.0;
        }
        let elements_per_second = operations_per_second / 2.0 / f64::from(self.multiprocessors);
        bytes as f64 / (READING_EFFICIENCY * bytes_per_second) * elements_per_second
    }
}

/// Returns the fastest kernel for a product of this shape.
pub(super) fn choose_kernel(dtype: Dtype, chip: Chip, shape: Shape) -> KernelChoice {
    let slower = H200_BYTES_PER_SECOND / chip.bytes_per_second.unwrap_or(H200_BYTES_PER_SECOND);
    let for_line = 1.0 + HOPPER_LINE_FROM_MEMORY * (slower - 1.0);
    let reading_time = chip.matrix_read_time(dtype, shape);
    let time = |choice: &KernelChoice| choice.shortest_product_time(shape, chip.multiprocessors);
    list_candidates(dtype, chip.capability)
        .into_iter()
        .map(|choice| KernelChoice {
            line_time: choice.line_time * for_line,
            reading_time,
            ..choice
        })
        .min_by(|a, b| time(a).total_cmp(&time(b)))
        .expect("every type has a kernel")
}

pub(super) fn list_candidates(dtype: Dtype, capability: (u32, u32)) -> Vec<KernelChoice> {
    // Kernels compiled for Hopper only run on Hopper.
    let is_hopper = capability == HOPPER;
    match dtype {
        Dtype::Fp32 if capability >= AMPERE => {
            let code = if is_hopper {
                kernels::MATMUL_FP32_HOPPER
            } else {
                kernels::MATMUL_FP32
            };
            [
                ((128, 256), 1, 1.0),
                ((128, 128), 2, 0.97),
                ((128, 64), 2, 0.905),
                ((64, 256), 2, 0.925),
                ((64, 128), 2, 0.845),
            ]
            .map(|(tile, blocks, efficiency)| KernelChoice {
                efficiency,
                blocks,
                cuttable: Some(CutProperties {
                    slab: FP32_SLAB,
                    part_steps: FP32_PART_STEPS,
                    sum_bytes: 4,
                }),
                shared_bytes: (tile.0 + tile.1) * FP32_SLAB * FP32_STAGES * 4,
                layout: Layout::StepByStep,
                ..KernelChoice::new(code, dtype, &tile_name(tile), tile, 256)
            })
            .to_vec()
        }
        Dtype::Fp64 if is_hopper => [
            ((128, 128), 6, 1.0),
            ((128, 64), 8, 0.98),
            ((64, 128), 8, 0.975),
            ((64, 64), 12, 0.95),
        ]
        .map(|(tile, stages, efficiency)| {
            KernelChoice::new_for_hopper(dtype, tile, stages, efficiency)
        })
        .to_vec(),
        Dtype::Fp64 if capability >= AMPERE => vec![KernelChoice {
            shared_bytes: 3 * 2 * 64 * 18 * 8,
            ..KernelChoice::new(kernels::MATMUL_FP64, dtype, "tensor", (64, 64), 128)
        }],
        Dtype::Fp32 | Dtype::Fp64 => vec![KernelChoice::new(
            kernels::MATMUL_ANY,
            dtype,
            "any",
            (64, 64),
            256,
        )],
        narrow if is_hopper => {
            let of_result = HOPPER_RESULT_STEPS * values::result_element_bytes(narrow) as f64
                / narrow.bytes() as f64;
            // 16-bit results are written while the next tile is computed.
            let (before, last) = if values::result_element_bytes(narrow) == 2 {
                (HOPPER_RESULT_BEFORE * of_result, of_result)
            } else {
                (of_result, 0.0)
            };
            [
                ((128, 256), 4, 1.0, before, last),
                ((128, 192), 4, HOPPER_192_EFFICIENCY, before, last),
                ((128, 128), 6, 1.0, 0.0, HOPPER_LAST_RESULT * of_result),
                ((128, 64), 8, 1.0, before, last),
            ]
            .map(
                |(tile, stages, efficiency, result_steps, last_result_steps)| {
                    let choice = KernelChoice::new_for_hopper(narrow, tile, stages, efficiency);
                    KernelChoice {
                        shared_bytes: choice.shared_bytes + HOPPER_RESULT_BYTES,
                        line_time: HOPPER_LINE_ELEMENTS,
                        result_steps,
                        last_result_steps,
                        ..choice
                    }
                },
            )
            .to_vec()
        }
        narrow => {
            let code = if narrow == Dtype::Fp8 {
                kernels::MATMUL_TENSOR_ADA
            } else {
                kernels::MATMUL_TENSOR
            };
            vec![KernelChoice {
                shared_bytes: 4 * 2 * 128 * 80,
                ..KernelChoice::new(code, narrow, "tensor", (128, 128), 256)
            }]
        }
    }
}

fn tile_name((rows, columns): (u32, u32)) -> String {
    format!("{rows}x{columns}")
}

impl KernelChoice {
    /// Creates a choice of a kernel that does not divide sums and needs no dynamic shared memory.
    fn new(code: Code, dtype: Dtype, variant: &str, tile: (u32, u32), threads: u32) -> Self {
        Self {
            code,
            kernel: format!("matmul_{dtype}_{variant}"),
            tile,
            threads,
            efficiency: 1.0,
            line_time: 0.0,
            result_steps: 0.0,
            last_result_steps: 0.0,
            blocks: 1,
            reading_time: 0.0,
            cuttable: None,
            shared_bytes: 0,
            inputs: Inputs::Addresses,
            layout: Layout::RowByRow,
        }
    }

    /// Creates a choice of a kernel in `matmul_hopper.cu`.
    fn new_for_hopper(dtype: Dtype, tile: (u32, u32), stages: u32, efficiency: f64) -> Self {
        let (part_steps, sum_bytes) = match dtype {
            Dtype::Fp64 => (HOPPER_FP64_PART_STEPS, 8),
            narrow => (HOPPER_PART_STEPS / narrow.bytes() as f64, 4),
        };
        Self {
            efficiency,
            cuttable: Some(CutProperties {
                slab: HOPPER_ROW_BYTES / dtype.bytes() as u32,
                part_steps,
                sum_bytes,
            }),
            shared_bytes: stages * ((tile.0 + tile.1) * HOPPER_ROW_BYTES + HOPPER_BARRIER_BYTES)
                + HOPPER_ALIGNMENT_BYTES,
            inputs: Inputs::Tiles,
            ..Self::new(kernels::MATMUL_HOPPER, dtype, &tile_name(tile), tile, 384)
        }
    }
}

// The division of sums into parts. It is used if the tiles of the last round would leave
// multiprocessors idle. `parts.cuh` contains the code for the GPU.

/// The maximum number of parts of a tile. Adding up more parts would take longer than the division
/// saves.
const MAX_PARTS: u64 = 16;
/// The size of the flags that `parts.cuh` stores before the parts, in bytes. Each part has a flag
/// of 32 bits.
const PART_FLAGS_BYTES: u64 = 16 << 10;

/// The properties of a kernel that can divide sums into parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct CutProperties {
    /// The number of steps in a slab. Sums can only be divided between slabs.
    pub(super) slab: u32,
    /// The time that a block needs to store or add a part, in steps of the sum.
    pub(super) part_steps: f64,
    pub(super) sum_bytes: u64,
}

/// A division of a product's tiles into parts. `whole` tiles are not divided, and each of the other
/// tiles has `parts` parts.
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
            .min(PART_FLAGS_BYTES / 4 / rest.max(1));
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
    pub(super) fn shortest_product_time(&self, shape: Shape, multiprocessors: u32) -> f64 {
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
        // If there are at least as many parts as multiprocessors, the GPU assigns two consecutive
        // blocks at a time to each multiprocessor. In the last round with whole tiles, some
        // multiprocessors then get two whole tiles, and others get only parts, so this round takes
        // longer. This was measured on an H100 and an H200.
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
        let step_time = self.tile_step_time(shape);
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
    fn tile_step_time(&self, shape: Shape) -> f64 {
        let rows =
            u64::from(self.tile.0).min(shape.rows.next_multiple_of(u64::from(HOPPER_COPIED_ROWS)));
        let lines = rows + u64::from(self.tile.1);
        (self.elements_per_tile() as f64 / self.efficiency).max(lines as f64 * self.line_time)
    }

    /// Returns the memory in bytes for a product's parts, or `None` if the kernel does not divide
    /// sums.
    pub(super) fn part_memory_bytes(
        &self,
        shape: Shape,
        TileDivision { whole, parts }: TileDivision,
    ) -> Option<u64> {
        let CutProperties { sum_bytes, .. } = self.cuttable?;
        Some(
            PART_FLAGS_BYTES
                + (self.count_tiles(shape) - whole) * parts * self.elements_per_tile() * sum_bytes,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: Chip = Chip {
        capability: HOPPER,
        multiprocessors: 132,
        bytes_per_second: Some(H200_BYTES_PER_SECOND),
        operations_per_second: None,
        cache_bytes: 60 << 20,
    };
    const H100: Chip = Chip {
        bytes_per_second: Some(3.35e12),
        cache_bytes: 50 << 20,
        ..H200
    };
    const TYPES: [Dtype; 7] = [
        Dtype::Fp64,
        Dtype::Fp32,
        Dtype::Tf32,
        Dtype::Fp16,
        Dtype::Bf16,
        Dtype::Fp8,
        Dtype::Int8,
    ];

    #[test]
    fn every_supported_type_has_kernel() {
        for capability in [
            (6, 0),
            (7, 0),
            (7, 5),
            (8, 0),
            (8, 6),
            (8, 9),
            (9, 0),
            (10, 0),
            (12, 0),
        ] {
            for dtype in TYPES
                .into_iter()
                .filter(|dtype| required_capability(*dtype) <= capability)
            {
                for n in [1, 100, 1000, 8192] {
                    let choice =
                        choose_kernel(dtype, Chip { capability, ..H200 }, Shape::from_side(n));
                    assert!(
                        choice.kernel.starts_with(&format!("matmul_{dtype}_")),
                        "{dtype} on {capability:?}"
                    );
                    assert_eq!(
                        choice.inputs == Inputs::Tiles,
                        capability == HOPPER && dtype != Dtype::Fp32
                    );
                    let Code::Ptx(_) = choice.code else { continue };
                    let text = String::from_utf8(choice.code.decompress()).unwrap();
                    assert!(
                        text.contains(&format!(".entry {}(", choice.kernel)),
                        "{}",
                        choice.kernel
                    );
                }
            }
        }
    }

    #[test]
    fn small_matrices_use_small_tiles() {
        let kernel = |dtype, n| choose_kernel(dtype, H200, Shape::from_side(n)).kernel;
        assert_eq!(
            [500, 8192].map(|n| kernel(Dtype::Fp32, n)),
            ["matmul_fp32_128x64", "matmul_fp32_128x256"]
        );
        let of_bf16 = [
            "matmul_bf16_128x64",
            "matmul_bf16_128x128",
            "matmul_bf16_128x256",
        ];
        assert_eq!([1024, 2048, 8192].map(|n| kernel(Dtype::Bf16, n)), of_bf16);
        assert_eq!(
            [1024, 8192].map(|n| kernel(Dtype::Fp64, n)),
            ["matmul_fp64_128x64", "matmul_fp64_128x128"]
        );
    }

    #[test]
    fn tiles_of_192_columns_fill_last_round() {
        let kernel = |dtype, rows, columns, depth| {
            choose_kernel(
                dtype,
                H200,
                Shape {
                    rows,
                    columns,
                    depth,
                },
            )
            .kernel
        };
        assert_eq!(kernel(Dtype::Bf16, 3000, 3000, 3000), "matmul_bf16_128x192");
        assert_eq!(kernel(Dtype::Bf16, 5000, 3000, 7000), "matmul_bf16_128x192");
        assert_eq!(kernel(Dtype::Fp8, 5008, 3008, 7008), "matmul_fp8_128x192");
        assert_eq!(
            kernel(Dtype::Fp16, 16384, 16384, 16384),
            "matmul_fp16_128x256"
        );
    }

    #[test]
    fn few_rows_or_columns_use_narrow_tiles() {
        let kernel = |dtype, rows, columns| {
            choose_kernel(
                dtype,
                H200,
                Shape {
                    rows,
                    columns,
                    depth: 8192,
                },
            )
            .kernel
        };
        assert_eq!(kernel(Dtype::Bf16, 64, 8192), "matmul_bf16_128x64");
        assert_eq!(kernel(Dtype::Fp32, 64, 8192), "matmul_fp32_64x256");
        assert_eq!(kernel(Dtype::Fp32, 8192, 64), "matmul_fp32_128x64");
        assert_eq!(kernel(Dtype::Fp64, 64, 8192), "matmul_fp64_64x128");
    }

    /// If results are wide and sums are not long, the fastest kernel is the one that writes results
    /// during the next multiplication.
    #[test]
    fn wide_results_are_written_during_multiplication() {
        let kernel = |dtype| choose_kernel(dtype, H200, Shape::from_side(4096)).kernel;
        assert_eq!(
            [Dtype::Bf16, Dtype::Int8].map(kernel),
            ["matmul_bf16_128x256", "matmul_int8_128x128"]
        );
        assert_eq!(
            choose_kernel(Dtype::Int8, H200, Shape::from_side(16384)).kernel,
            "matmul_int8_128x256"
        );
    }

    /// If each of the 12 divided tiles had 11 parts, there would be 264 blocks, two for each
    /// multiprocessor. Some multiprocessors would then have two whole tiles, and others only parts.
    #[test]
    fn each_undivided_tile_has_its_own_multiprocessor() {
        for chip in [H100, H200] {
            let shape = Shape::from_side(1500);
            let choice = choose_kernel(Dtype::Fp32, chip, shape);
            assert_eq!(choice.kernel, "matmul_fp32_128x128");
            assert_eq!(
                choice.fastest_division(shape, chip.multiprocessors),
                TileDivision {
                    whole: 132,
                    parts: 10
                }
            );
        }
    }

    /// If memory limits the speed, smaller tiles or parts do not help.
    #[test]
    fn few_rows_are_not_divided_if_memory_bound() {
        for chip in [H100, H200] {
            let chip = Chip {
                operations_per_second: Some(989.4e12),
                ..chip
            };
            for rows in [16, 64, 128] {
                let shape = Shape {
                    rows,
                    columns: 8192,
                    depth: 8192,
                };
                let choice = choose_kernel(Dtype::Bf16, chip, shape);
                assert_eq!(
                    (&*choice.kernel, choice.fastest_division(shape, 132).parts),
                    ("matmul_bf16_128x64", 1),
                    "{rows} rows"
                );
            }
            // These matrices fit into the cache, so memory does not limit the speed.
            let shape = Shape {
                rows: 16,
                columns: 4096,
                depth: 4096,
            };
            assert_eq!(
                choose_kernel(Dtype::Bf16, chip, shape)
                    .fastest_division(shape, 132)
                    .parts,
                2
            );
        }
    }

    /// Small tiles load more bytes per operation, so they are slower if the memory is slow.
    #[test]
    fn larger_tiles_are_chosen_for_slower_memory() {
        let kernel = |chip, dtype, n| choose_kernel(dtype, chip, Shape::from_side(n)).kernel;
        let on = |chip| {
            [(Dtype::Bf16, 2048), (Dtype::Int8, 4096)].map(|(dtype, n)| kernel(chip, dtype, n))
        };
        assert_eq!(on(H200), ["matmul_bf16_128x128", "matmul_int8_128x128"]);
        assert_eq!(on(H100), ["matmul_bf16_128x256", "matmul_int8_128x256"]);
        assert_eq!(
            kernel(
                Chip {
                    bytes_per_second: None,
                    ..H100
                },
                Dtype::Bf16,
                2048
            ),
            "matmul_bf16_128x128"
        );
    }

    /// The order of additions must be the same in every run. Otherwise, the products of two runs
    /// would differ in some bits.
    #[test]
    fn kernels_do_not_use_atomic_additions() {
        let sources = [
            include_str!("../../../kernels/parts.cuh"),
            include_str!("../../../kernels/matmul_any.cu"),
            include_str!("../../../kernels/matmul_fp32.cu"),
            include_str!("../../../kernels/matmul_fp64.cu"),
            include_str!("../../../kernels/matmul_tensor.cu"),
            include_str!("../../../kernels/matmul_hopper.cu"),
        ];
        for capability in [(6, 0), (8, 9), (9, 0)] {
            for dtype in TYPES
                .into_iter()
                .filter(|dtype| required_capability(*dtype) <= capability)
            {
                for KernelChoice { kernel, .. } in list_candidates(dtype, capability) {
                    // In the sources, a macro builds the kernels' names from a prefix and the tile,
                    // so only the prefix is searched for.
                    let (start, _) = kernel.rsplit_once('_').unwrap();
                    assert!(
                        sources.iter().any(|source| source.contains(start)),
                        "{kernel} is looked at"
                    );
                }
            }
        }
        for source in sources {
            for word in ["atomic", "atom.", " red.", "\"red."] {
                assert!(!source.contains(word), "{word}");
            }
        }
    }

    #[test]
    fn padding_is_multiple_of_tile_without_bounds_check() {
        for capability in [(7, 0), (8, 9), (9, 0)] {
            for dtype in TYPES
                .into_iter()
                .filter(|dtype| required_capability(*dtype) <= capability)
            {
                for KernelChoice {
                    kernel,
                    tile: (down, across),
                    ..
                } in list_candidates(dtype, capability)
                {
                    assert_eq!(PADDING_MULTIPLE % u64::from(down), 0);
                    // The kernel with 192 columns checks for the end of a row at each strip of 64
                    // columns, or of 32 columns for 32-bit results.
                    let divided = if kernel.ends_with("_128x192") {
                        PADDING_MULTIPLE / 4
                    } else {
                        u64::from(across)
                    };
                    assert_eq!(
                        (PADDING_MULTIPLE % divided, u64::from(across) % divided),
                        (0, 0),
                        "{kernel}"
                    );
                }
            }
        }
        assert_eq!(
            [1, 256, 257, 1000].map(padded_row_count),
            [256, 256, 512, 1024]
        );
    }
}

#[cfg(test)]
mod division_tests {
    use super::*;
    use crate::protocol::Dtype;

    fn find_choice(kernel: &str, dtype: Dtype) -> KernelChoice {
        list_candidates(dtype, HOPPER)
            .into_iter()
            .find(|choice| choice.kernel == kernel)
            .unwrap()
    }

    #[test]
    fn tiles_of_last_round_are_divided_if_faster() {
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
        // There are fewer tiles than multiprocessors, so all tiles are divided into parts.
        assert_eq!(cut(64, 8192, 8192), TileDivision { whole: 0, parts: 2 });
    }

    #[test]
    fn every_part_of_tile_has_flag_and_slab() {
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
                        (tiles - cut.whole) * cut.parts * 4 <= PART_FLAGS_BYTES,
                        "{cut:?}"
                    );
                    assert!(cut.parts == 1 || cut.count_pieces(tiles) > tiles, "{cut:?}");
                }
            }
        }
    }
}
