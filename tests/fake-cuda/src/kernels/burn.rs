//! Products over and over: `burn.cu`.

use super::{Arguments, Known};

/// What is no number.
const POISON: u32 = u32::MAX;

pub(super) const KERNELS: &[Known] = &[("burn_product", |given, _| product(given)), ("burn_compare", compare)];

/// Arguments: the products, the two factors, their side, how many products. All of them are alike, so that one is made.
fn product(given: Arguments) -> (u64, usize) {
    let (side, count): (u64, u64) = (given.at(3), given.at(4));
    let out = given.array::<f32>(0, side * side * count);
    let (a, b) = (&*given.array::<f32>(1, side * side), &*given.array::<f32>(2, side * side));
    let side = side as usize;
    let (first, others) = out.split_at_mut(side * side);
    first.fill(0.0);
    for (row, a) in first.chunks_mut(side).zip(a.chunks(side)) {
        for (a, b) in a.iter().zip(b.chunks(side)) {
            row.iter_mut().zip(b).for_each(|(sum, b)| *sum += a * b);
        }
    }
    others.chunks_mut(side * side).for_each(|other| other.copy_from_slice(first));
    (given.at(0), size_of_val(out))
}

/// Arguments: the count of wrong words, the products, the one that is right, its words, how many products.
fn compare(given: Arguments, _: u64) -> (u64, usize) {
    let (words, count): (u64, u64) = (given.at(3), given.at(4));
    let (wrong, products) = (given.array::<u64>(0, 1), given.array::<u32>(1, words * count));
    let first = given.array::<u32>(2, words);
    for (at, word) in products.iter_mut().enumerate() {
        let is_wrong = *word != first[at % words as usize] || f32::from_bits(*word).is_nan();
        wrong[0] += u64::from(is_wrong);
        *word = POISON;
    }
    (given.at(1), size_of_val(products))
}
