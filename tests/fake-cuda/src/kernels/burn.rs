//! The kernels of `burn.cu`, which compare products.

use super::{Arguments, Known};
use crate::activity::record_traffic;

type Pack = [u32; 4];

/// A word that no product contains.
const POISON: u32 = 0x7fff_ffff;

pub(super) const KERNELS: &[Known] = &[
    ("burn_poison", |given, _| poison_products(given)),
    ("burn_compare", |given, _| compare_products(given)),
];

/// Arguments: the products, and the number of packs (four words each) in all of them.
fn poison_products(given: Arguments) -> (u64, usize) {
    let products = given.array_at::<Pack>(0, given.read_argument(1));
    products.fill([POISON; 4]);
    (given.read_argument(0), size_of_val(products))
}

/// Arguments: the result (the number of wrong words), the products, the reference, the number of
/// packs in the reference, and the number of products.
fn compare_products(given: Arguments) -> (u64, usize) {
    let (packs, count): (u64, u64) = (given.read_argument(3), given.read_argument(4));
    let (wrong, products) = (
        given.array_at::<u64>(0, 1),
        given.array_at::<Pack>(1, packs * count),
    );
    let first = given.array_at::<Pack>(2, packs);
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
    // The kernel reads the products and overwrites them with poison.
    record_traffic(2 * size_of_val(products));
    (given.read_argument(1), size_of_val(products))
}
