//! The fields that were asked for, in their order.

use super::field::Field;
use super::row::{Gpu, Row};
use crate::Context;

/// Chosen fields, of whatever query.
pub(super) trait Choice {
    /// The line of names, with its end.
    fn header(&self) -> String;

    /// The rows of all GPUs, each with its end.
    fn rows(&self, context: &Context<'_>, units: bool) -> String;
}

/// Chosen fields of rows that are about a `T` each.
pub(super) struct Fields<T: 'static> {
    /// The fields; one may be there twice.
    pub(super) fields: Vec<&'static Field<T>>,
    pub(super) items: fn(&Gpu<'_>) -> Vec<T>,
}

impl<T> Choice for Fields<T> {
    fn header(&self) -> String {
        line(self.fields.iter().map(|field| field.heading()))
    }

    fn rows(&self, context: &Context<'_>, units: bool) -> String {
        let of_each_gpu = context.each(|index| {
            let gpu = Gpu::new(context, index);
            let row = |item: &T| {
                let row = Row { gpu: &gpu, item };
                line(self.fields.iter().map(|field| field.text(&row, units)))
            };
            (self.items)(&gpu).iter().map(row).collect::<String>()
        });
        of_each_gpu.concat()
    }
}

fn line(cells: impl Iterator<Item = String>) -> String {
    cells.collect::<Vec<_>>().join(", ") + "\n"
}
