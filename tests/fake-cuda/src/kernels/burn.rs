//! Whether products are alike: `burn.cu`.

use super::{Arguments, Known};
use crate::activity::moves;

/// Four words.
type Pack = [u32; 4];

/// What no product has.
const POISON: u32 = 0x7fff_ffff;

pub(super) const KERNELS: &[Known] = &[
    ("burn_poison", |given, _| poison(given)),
    ("burn_compare", |given, _| compare(given)),
];

/// Arguments: the products, and how many packs they are together.
fn poison(given: Arguments) -> (u64, usize) {
    let products = given.array::<Pack>(0, given.at(1));
    products.fill([POISON; 4]);
    (given.at(0), size_of_val(products))
}

/// Arguments: the count of wrong words, the products, the one that is right, its packs, how many products.
fn compare(given: Arguments) -> (u64, usize) {
    let (packs, count): (u64, u64) = (given.at(3), given.at(4));
    let (wrong, products) = (
        given.array::<u64>(0, 1),
        given.array::<Pack>(1, packs * count),
    );
    let first = given.array::<Pack>(2, packs);
    for (product, first) in products
        .chunks_mut(packs as usize)
        .flat_map(|product| product.iter_mut().zip(&*first))
    {
        let is_wrong = |(word, first): (&u32, &u32)| word != first || *word == POISON;
        wrong[0] += product
            .iter()
            .zip(first)
            .filter(|words| is_wrong(*words))
            .count() as u64;
        *product = [POISON; 4];
    }
    // Read and poisoned.
    moves(2 * size_of_val(products));
    (given.at(1), size_of_val(products))
}
