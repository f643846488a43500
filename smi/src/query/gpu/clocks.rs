//! Fields for the clocks: the current ones, the configured ones and the supported ones.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::super::cell::as_number;
use super::super::field::{Section, field, fields, with_title};

// The values of `nvmlClockType_t`.
const GRAPHICS: u32 = 0;
const SM: u32 = 1;
const MEMORY: u32 = 2;
const VIDEO: u32 = 3;

pub(super) const SECTIONS: &[Section] = &[
    fields(&[
        field(
            "clocks.current.graphics or clocks.gr [MHz]",
            Q::Clock(GRAPHICS),
            as_number::<0>,
            "The clock of the graphics engine now.",
        ),
        field(
            "clocks.current.sm or clocks.sm [MHz]",
            Q::Clock(SM),
            as_number::<0>,
            "The clock of the multiprocessors (SM) now.",
        ),
        field(
            "clocks.current.memory or clocks.mem [MHz]",
            Q::Clock(MEMORY),
            as_number::<0>,
            "The clock of the memory now.",
        ),
        field(
            "clocks.current.video or clocks.video [MHz]",
            Q::Clock(VIDEO),
            as_number::<0>,
            "The clock of the video encoder and decoder now.",
        ),
    ]),
    with_title(
        "clocks.applications",
        "The clocks at which programs are to run, which the switches [-ac | \
         --applications-clocks] set.",
        &[
            field(
                "clocks.applications.graphics or clocks.applications.gr [MHz]",
                Q::ApplicationsClock(GRAPHICS),
                as_number::<0>,
                "The clock of the graphics engine that was set.",
            ),
            field(
                "clocks.applications.memory or clocks.applications.mem [MHz]",
                Q::ApplicationsClock(MEMORY),
                as_number::<0>,
                "The clock of the memory that was set.",
            ),
        ],
    ),
    with_title(
        "clocks.default_applications",
        "The clocks at which programs run where no others were set. The switches [-ac | \
         --applications-clocks] set others, [-rac | --reset-applications-clocks] go back \
         to these.",
        &[
            field(
                "clocks.default_applications.graphics or clocks.default_applications.gr [MHz]",
                Q::DefaultApplicationsClock(GRAPHICS),
                as_number::<0>,
                "The clock of the graphics engine where none was set.",
            ),
            field(
                "clocks.default_applications.memory or clocks.default_applications.mem [MHz]",
                Q::DefaultApplicationsClock(MEMORY),
                as_number::<0>,
                "The clock of the memory where none was set.",
            ),
        ],
    ),
    with_title(
        "clocks.max",
        "The fastest clocks for which the GPU was made.",
        &[
            field(
                "clocks.max.graphics or clocks.max.gr [MHz]",
                Q::MaxClock(GRAPHICS),
                as_number::<0>,
                "The fastest clock of the graphics engine.",
            ),
            // nvidia-smi's help lists this field twice.
            field(
                "clocks.max.sm or clocks.max.sm [MHz]",
                Q::MaxClock(SM),
                as_number::<0>,
                "The fastest clock of the multiprocessors (SM).",
            ),
            field(
                "clocks.max.memory or clocks.max.mem [MHz]",
                Q::MaxClock(MEMORY),
                as_number::<0>,
                "The fastest clock of the memory.",
            ),
        ],
    ),
];
