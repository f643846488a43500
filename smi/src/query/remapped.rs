//! `--query-remapped-rows`: rows of memory that were replaced by spare ones, one row of output for each GPU.

use super::common::Common;
use super::gpu::{REMAPPED_ROWS, itself};
use super::table::Table;

pub(super) static TABLE: Table<()> = Table { subjects: &[Common::<()>::SECTIONS, REMAPPED_ROWS], items: itself };
