//! What is compared, as it was typed: a recording or a span of history.

use std::{collections::BTreeMap, path::Path, slice};

use anyhow::anyhow;
use gpumon_history::span::HistorySpan;
use gpumon_probe::{
    model::{ConditionKind, Health, Inventory, Record, Sample, fields::GPU_FIELDS, now_ms},
    stat::{Stat, Window},
};
use gpumon_recording::Recording;

use super::{
    super::{
        figures::Figures,
        meter::{METRICS, Meter, Point, throttled_percent},
        replay,
    },
    GpuName, Side,
};
use crate::{
    exit::{Result, say, usage},
    moment::{Beside, MomentSpan},
    past::PastArgs,
    recorded::samples,
};

pub(super) enum Subject<'a> {
    Recording(&'a str),
    Span(&'a str, MomentSpan),
}

impl<'a> Subject<'a> {
    /// A file that is there is meant, whatever it is called.
    pub(super) fn new(text: &'a str) -> Result<Self> {
        if !text.contains("..") || Path::new(text).exists() {
            if !Path::new(text).exists() {
                let cure = "give a file of `gpumon record`, or a span of history as FROM..TO, for example 20:00..22:00";
                return Err(usage!("there is no recording '{text}': {cure}"));
            }
            return Ok(Self::Recording(text));
        }
        text.parse()
            .map(|span| Self::Span(text, span))
            .map_err(|why: String| usage!(why))
    }

    pub(super) fn measure(&self, past: &PastArgs) -> Result<Side> {
        match self {
            Self::Recording(file) => of_recording(file),
            Self::Span(text, span) => of_history(text, *span, past),
        }
    }
}

#[derive(Default)]
struct Measured {
    gpus: BTreeMap<u32, (GpuName, Meter)>,
    inventory: Option<Inventory>,
    first_ms: Option<u64>,
    last: Option<(u64, u32)>,
    /// The memory of all GPUs together.
    memory: Window,
}

fn of_recording(file: &str) -> Result<Side> {
    let recording = Recording::open(Path::new(file)).map_err(replay::failure)?;
    if let Some(cuts) = replay::cuts(&recording) {
        say(&cuts);
    }
    let mut measured = Measured::default();
    let (first_ms, last_ms) = recording.times_ms();
    samples(
        &recording,
        &(first_ms.min(last_ms)..last_ms.max(first_ms).saturating_add(1)),
        |record| {
            match record {
                Record::Inventory(inventory) => measured.inventory = Some(inventory),
                Record::Sample(sample) => measured.add(&sample),
                _ => {}
            }
            Ok(())
        },
    )?;
    Ok(measured.side(file))
}

impl Measured {
    fn add(&mut self, sample: &Sample) {
        let interval_ms = u64::from(sample.interval_ms);
        // In a gap, nothing is known.
        let time_ms = self.last.map_or(interval_ms, |(before_ms, _)| {
            let apart_ms = sample.at_ms.saturating_sub(before_ms);
            if apart_ms > (interval_ms * 5 / 2).max(1500) {
                interval_ms
            } else {
                apart_ms
            }
        });
        self.first_ms.get_or_insert(sample.at_ms);
        self.last = Some((sample.at_ms, sample.interval_ms));
        let mut memory = Window::default();
        for gpu in sample.gpus.iter().filter(|gpu| gpu.health == Health::Ok) {
            let (_, meter) = self.gpus.entry(gpu.index).or_insert_with(|| {
                (
                    GpuName {
                        index: gpu.index,
                        uuid: gpu.uuid.clone(),
                        name: None,
                    },
                    Meter::default(),
                )
            });
            let stat = |id| {
                let field = GPU_FIELDS.iter().find(|field| field.id == id)?;
                field.access.value(gpu).map(Stat::of)
            };
            let is_throttled = gpu
                .conditions
                .iter()
                .any(|condition| matches!(condition.kind, ConditionKind::Throttled { .. }));
            let point = Point {
                time_ms,
                stats: METRICS.map(stat),
                counted_ms: gpu.power.energy_joules_total.read_at_ms(gpu.at_ms),
                is_throttled: Some(is_throttled),
            };
            meter.add(&point);
            if let Some(bytes) = point.memory_bytes() {
                memory.add(bytes, 1.0);
            }
        }
        if let Some(bytes) = memory.integral() {
            self.memory.add(bytes, 1.0);
        }
    }

    fn side(self, name: &str) -> Side {
        // The newest inventory knows the most.
        let known = self
            .inventory
            .map_or_else(Vec::new, |inventory| inventory.gpus);
        let named = |(mut gpu, meter): (GpuName, Meter)| {
            let known = known.iter().find(|known| known.index == gpu.index);
            gpu.name = known.and_then(|known| known.name.value().cloned());
            gpu.uuid = known.and_then(|known| known.uuid.clone()).or(gpu.uuid);
            (gpu, meter.to_figures(None))
        };
        let gpus: Vec<_> = self.gpus.into_values().map(named).collect();
        Side {
            name: name.to_owned(),
            from_ms: self.first_ms.unwrap_or(0),
            to_ms: self.last.map_or(0, |(at_ms, interval_ms)| {
                at_ms.saturating_add(interval_ms.into())
            }),
            all: Figures::of_all(&gpus.iter().map(|(_, figures)| figures), self.memory.max()),
            gpus,
        }
    }
}

fn of_history(text: &str, span: MomentSpan, past: &PastArgs) -> Result<Side> {
    let asked = span
        .resolve(&Beside::now(now_ms()))
        .map_err(|why| usage!("{text}: {why}"))?;
    let span = past.ask(&asked, &METRICS, None)?;
    if span.gpus.is_empty() {
        return Err(anyhow!("{text}: nothing is known of that time; {}", past.cure()).into());
    }
    // Some of it may be missing, and the two would not be alike.
    if span.from_ms > asked.start.saturating_add(span.resolution_ms) {
        let from = crate::moment::shown(span.from_ms, &Beside::now(0).zone);
        say(&format!("{text}: nothing is known before {from}"));
    }
    Ok(side(text, &span))
}

fn side(text: &str, span: &HistorySpan) -> Side {
    let times = &span.times_ms;
    let mut memory = vec![Window::default(); times.len()];
    let gpus: Vec<_> = span
        .gpus
        .iter()
        .map(|gpu| {
            let mut meter = Meter::default();
            for (place, memory) in memory.iter_mut().enumerate() {
                let point = Point::new(span, gpu, place);
                if let Some(bytes) = point.memory_bytes() {
                    memory.add(bytes, 1.0);
                }
                meter.add(&point);
            }
            let name = GpuName {
                index: gpu.index,
                uuid: Some(gpu.uuid.clone()),
                name: gpu.name.clone(),
            };
            let conditions = span.conditions.iter();
            let throttled = throttled_percent(
                conditions.filter(|condition| condition.uuid == gpu.uuid),
                slice::from_ref(&(span.from_ms..span.to_ms)),
            );
            (name, meter.to_figures(Some(throttled)))
        })
        .collect();
    Side {
        name: text.to_owned(),
        from_ms: span.from_ms,
        // The first moment behind it.
        to_ms: span.to_ms + 1,
        all: Figures::of_all(
            &gpus.iter().map(|(_, figures)| figures),
            memory.iter().filter_map(Window::integral).reduce(f64::max),
        ),
        gpus,
    }
}
