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

pub(super) const SECTIONS: &[Section<()>] = &[
    Section {
        title: None,
        fields: &[
            field("clocks.current.graphics", now::<GRAPHICS>)
                .about("The clock of the graphics engine now.")
                .or("clocks.gr")
                .unit("MHz"),
            field("clocks.current.sm", now::<SM>)
                .about("The clock of the multiprocessors (SM) now.")
                .or("clocks.sm")
                .unit("MHz"),
            field("clocks.current.memory", now::<MEMORY>)
                .about("The clock of the memory now.")
                .or("clocks.mem")
                .unit("MHz"),
            field("clocks.current.video", now::<VIDEO>)
                .about("The clock of the video encoder and decoder now.")
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
            field("clocks.applications.graphics", set::<GRAPHICS>)
                .about("The clock of the graphics engine that was set.")
                .or("clocks.applications.gr")
                .unit("MHz"),
            field("clocks.applications.memory", set::<MEMORY>)
                .about("The clock of the memory that was set.")
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
            field("clocks.default_applications.graphics", default::<GRAPHICS>)
                .about("The clock of the graphics engine where none was set.")
                .or("clocks.default_applications.gr")
                .unit("MHz"),
            field("clocks.default_applications.memory", default::<MEMORY>)
                .about("The clock of the memory where none was set.")
                .or("clocks.default_applications.mem")
                .unit("MHz"),
        ],
    },
    Section {
        title: Some(("clocks.max", "The fastest clocks for which the GPU was made.")),
        fields: &[
            field("clocks.max.graphics", fastest::<GRAPHICS>)
                .about("The fastest clock of the graphics engine.")
                .or("clocks.max.gr")
                .unit("MHz"),
            // nvidia-smi's help names it twice.
            field("clocks.max.sm", fastest::<SM>)
                .about("The fastest clock of the multiprocessors (SM).")
                .or("clocks.max.sm")
                .unit("MHz"),
            field("clocks.max.memory", fastest::<MEMORY>)
                .about("The fastest clock of the memory.")
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
