//! The clocks as they are, as they were set, and as they can be.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::super::cell::{Cell, number};
use super::super::field::{Section, field, titled, untitled};
use super::super::row::Row;

// `nvmlClockType_t`.
const GRAPHICS: u32 = 0;
const SM: u32 = 1;
const MEMORY: u32 = 2;
const VIDEO: u32 = 3;

pub(super) const SECTIONS: &[Section<()>] = &[
    untitled(&[
        field(
            "clocks.current.graphics or clocks.gr [MHz]",
            now::<GRAPHICS>,
        )
        .about("The clock of the graphics engine now."),
        field("clocks.current.sm or clocks.sm [MHz]", now::<SM>)
            .about("The clock of the multiprocessors (SM) now."),
        field("clocks.current.memory or clocks.mem [MHz]", now::<MEMORY>)
            .about("The clock of the memory now."),
        field("clocks.current.video or clocks.video [MHz]", now::<VIDEO>)
            .about("The clock of the video encoder and decoder now."),
    ]),
    titled(
        "clocks.applications",
        "The clocks at which programs are to run, which the switches [-ac | --applications-clocks] set.",
        &[
            field(
                "clocks.applications.graphics or clocks.applications.gr [MHz]",
                set::<GRAPHICS>,
            )
            .about("The clock of the graphics engine that was set."),
            field(
                "clocks.applications.memory or clocks.applications.mem [MHz]",
                set::<MEMORY>,
            )
            .about("The clock of the memory that was set."),
        ],
    ),
    titled(
        "clocks.default_applications",
        "The clocks at which programs run where no others were set. The switches [-ac | --applications-clocks] set \
         others, [-rac | --reset-applications-clocks] go back to these.",
        &[
            field(
                "clocks.default_applications.graphics or clocks.default_applications.gr [MHz]",
                default::<GRAPHICS>,
            )
            .about("The clock of the graphics engine where none was set."),
            field(
                "clocks.default_applications.memory or clocks.default_applications.mem [MHz]",
                default::<MEMORY>,
            )
            .about("The clock of the memory where none was set."),
        ],
    ),
    titled(
        "clocks.max",
        "The fastest clocks for which the GPU was made.",
        &[
            field(
                "clocks.max.graphics or clocks.max.gr [MHz]",
                fastest::<GRAPHICS>,
            )
            .about("The fastest clock of the graphics engine."),
            // nvidia-smi's help names it twice.
            field("clocks.max.sm or clocks.max.sm [MHz]", fastest::<SM>)
                .about("The fastest clock of the multiprocessors (SM)."),
            field(
                "clocks.max.memory or clocks.max.mem [MHz]",
                fastest::<MEMORY>,
            )
            .about("The fastest clock of the memory."),
        ],
    ),
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
