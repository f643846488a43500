//! The clocks as they are, as they were set, and as they can be.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::super::cell::{Cell, number};
use super::super::field::{Section, field};
use super::super::row::Row;

// `nvmlClockType_t`.
const GRAPHICS: u32 = 0;
const SM: u32 = 1;
const MEMORY: u32 = 2;
const VIDEO: u32 = 3;

/// The fields.
pub(super) const SECTIONS: &[Section<()>] = &[
    Section {
        title: None,
        fields: &[
            field("clocks.current.graphics", "The clock of the graphics engine now.", now::<GRAPHICS>)
                .or("clocks.gr")
                .unit("MHz"),
            field("clocks.current.sm", "The clock of the multiprocessors (SM) now.", now::<SM>)
                .or("clocks.sm")
                .unit("MHz"),
            field("clocks.current.memory", "The clock of the memory now.", now::<MEMORY>).or("clocks.mem").unit("MHz"),
            field("clocks.current.video", "The clock of the video encoder and decoder now.", now::<VIDEO>)
                .or("clocks.video")
                .unit("MHz"),
        ],
    },
    Section {
        title: Some((
            "clocks.applications",
            "The clocks at which programs are to run, which the switches [-ac | --applications-clocks] set.",
        )),
        fields: &[
            field("clocks.applications.graphics", "The clock of the graphics engine that was set.", set::<GRAPHICS>)
                .or("clocks.applications.gr")
                .unit("MHz"),
            field("clocks.applications.memory", "The clock of the memory that was set.", set::<MEMORY>)
                .or("clocks.applications.mem")
                .unit("MHz"),
        ],
    },
    Section {
        title: Some((
            "clocks.default_applications",
            "The clocks at which programs run where no others were set. The switches [-ac | \
             --applications-clocks] set others, [-rac | --reset-applications-clocks] go back to these.",
        )),
        fields: &[
            field(
                "clocks.default_applications.graphics",
                "The clock of the graphics engine where none was set.",
                default::<GRAPHICS>,
            )
            .or("clocks.default_applications.gr")
            .unit("MHz"),
            field(
                "clocks.default_applications.memory",
                "The clock of the memory where none was set.",
                default::<MEMORY>,
            )
            .or("clocks.default_applications.mem")
            .unit("MHz"),
        ],
    },
    Section {
        title: Some(("clocks.max", "The fastest clocks for which the GPU was made.")),
        fields: &[
            field("clocks.max.graphics", "The fastest clock of the graphics engine.", fastest::<GRAPHICS>)
                .or("clocks.max.gr")
                .unit("MHz"),
            // nvidia-smi's help names it twice.
            field("clocks.max.sm", "The fastest clock of the multiprocessors (SM).", fastest::<SM>)
                .or("clocks.max.sm")
                .unit("MHz"),
            field("clocks.max.memory", "The fastest clock of the memory.", fastest::<MEMORY>)
                .or("clocks.max.mem")
                .unit("MHz"),
        ],
    },
];

fn now<const CLOCK: u32>(row: &Row<'_, ()>) -> Cell {
    number(row.ask(Q::Clock(CLOCK)), 0)
}

fn set<const CLOCK: u32>(row: &Row<'_, ()>) -> Cell {
    number(row.ask(Q::ApplicationsClock(CLOCK)), 0)
}

fn default<const CLOCK: u32>(row: &Row<'_, ()>) -> Cell {
    number(row.ask(Q::DefaultApplicationsClock(CLOCK)), 0)
}

fn fastest<const CLOCK: u32>(row: &Row<'_, ()>) -> Cell {
    number(row.ask(Q::MaxClock(CLOCK)), 0)
}
