//! Chooses the resolution of a span, and the tier that its points are made from.

use std::ops::RangeInclusive;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{grid::Grid, wanted::MetricSelection};

/// The allowed range for the number of points in a request.
pub const POINT_LIMITS: RangeInclusive<u32> = 1..=5000;

/// A request for a span of history.
#[derive(Debug, Clone)]
pub struct SpanRequest {
    /// The start of the span.
    pub from_ms: u64,
    /// The end of the span.
    pub to_ms: u64,
    /// The maximum number of points on the time axis.
    pub points: u32,
    /// The requested length of a point, used instead of `points`. If no tier has this resolution,
    /// points have a multiple of a tier's resolution.
    pub resolution_ms: Option<u64>,
    /// The metrics of the span.
    pub wanted: MetricSelection,
}

/// The query of `GET /api/v1/history`: a span of time, its metrics and resolution.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HistoryQuery {
    /// The start in milliseconds since 1970; by default, ten minutes before the end.
    pub from_ms: Option<u64>,
    /// The end in milliseconds since 1970; by default, now.
    pub to_ms: Option<u64>,
    /// Comma-separated metrics of the field catalog; by default, the metrics of the overview.
    pub metrics: Option<String>,
    /// The maximum number of points; by default, 600.
    #[schemars(range(min = *POINT_LIMITS.start(), max = *POINT_LIMITS.end()))]
    pub points: Option<u32>,
    /// The length of a point in milliseconds, instead of `points`. At most 5000 points are
    /// returned.
    #[schemars(range(min = 1))]
    pub resolution_ms: Option<u64>,
}

impl HistoryQuery {
    /// Returns the endpoint with this query, for a request to a server.
    pub fn request_target(&self) -> String {
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        let metrics = self.metrics.as_deref();
        let parts = [
            ("from_ms", number(self.from_ms)),
            ("to_ms", number(self.to_ms)),
            (
                "metrics",
                metrics.map(|ids| utf8_percent_encode(ids, NON_ALPHANUMERIC).to_string()),
            ),
            ("points", number(self.points.map(u64::from))),
            ("resolution_ms", number(self.resolution_ms)),
        ];
        let parts = parts.into_iter();
        let parts: Vec<_> = parts
            .filter_map(|(key, value)| Some(format!("{key}={}", value?)))
            .collect();
        format!("history?{}", parts.join("&"))
    }
}

impl SpanRequest {
    /// Returns the endpoint with the query for this request to a server.
    pub fn request_target(&self) -> String {
        let query = HistoryQuery {
            from_ms: Some(self.from_ms),
            to_ms: Some(self.to_ms),
            metrics: Some(self.wanted.ids().join(",")),
            points: Some(self.points),
            resolution_ms: self.resolution_ms,
        };
        query.request_target()
    }
}

/// The history that is available at one resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tier {
    /// The time between two entries, in milliseconds.
    pub resolution_ms: u64,
    /// The time of the oldest entry.
    pub oldest_ms: u64,
    /// Whether the entries are single samples; otherwise, they aggregate several samples.
    pub is_sampled: bool,
}

/// The resolution and source of a span's points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The start of the span, limited to the available history.
    pub from_ms: u64,
    /// The end of the span.
    pub to_ms: u64,
    /// The oldest time in any tier.
    pub oldest_ms: u64,
    /// The index of the tier that the points are made from.
    pub tier: usize,
    /// The length of a point, or 0 if each entry is a point.
    pub step_ms: u64,
    /// The length of a point in milliseconds, which is never 0.
    pub resolution_ms: u64,
}

impl Plan {
    /// Chooses one of the tiers, which are ordered from fine to coarse.
    ///
    /// To read as little as possible, points are made from the coarsest tier that has at least half
    /// as many entries as the maximum number of points. If this tier does not reach back to the
    /// start of the span, a coarser tier that reaches further is chosen. If all tiers are too
    /// coarse, the finest is chosen. For a requested resolution, the coarsest tier whose resolution
    /// divides it is chosen.
    pub fn new(request: &SpanRequest, tiers: &[Tier]) -> Self {
        let SpanRequest { to_ms, points, .. } = *request;
        // The first entry of a coarser tier starts before the finer entries that it was made from.
        let is_older = |coarser: &Tier, than: &Tier| {
            coarser.oldest_ms + coarser.resolution_ms <= than.oldest_ms
        };
        let oldest = tiers
            .iter()
            .reduce(|oldest, tier| if is_older(tier, oldest) { tier } else { oldest });
        let oldest_ms = oldest.map_or(to_ms, |tier| tier.oldest_ms);
        let from_ms = request.from_ms.max(oldest_ms).min(to_ms);
        let least_ms = request
            .resolution_ms
            .unwrap_or((to_ms - from_ms) / u64::from(points.max(1)));
        let coarsest = |is_fit: &dyn Fn(u64) -> bool| {
            tiers.iter().rposition(|tier| is_fit(tier.resolution_ms))
        };
        let enough = match request.resolution_ms {
            None => coarsest(&|tier_ms| tier_ms <= 2 * least_ms),
            Some(asked_ms) => coarsest(&|tier_ms| asked_ms.is_multiple_of(tier_ms))
                .or_else(|| coarsest(&|tier_ms| tier_ms <= asked_ms)),
        };
        let enough = enough.unwrap_or(0);
        let reaches = |at: usize| {
            let tier = &tiers[at];
            tier.oldest_ms <= from_ms
                || !tiers[at + 1..]
                    .iter()
                    .any(|coarser| is_older(coarser, tier))
        };
        let tier = (enough..tiers.len())
            .find(|tier| reaches(*tier))
            .unwrap_or(enough);
        let entry_ms = tiers.get(tier).map_or(1000, |tier| tier.resolution_ms);
        let resolution_ms = least_ms.max(1).next_multiple_of(entry_ms);
        let is_sampled = tiers.get(tier).is_none_or(|tier| tier.is_sampled);
        let step_ms = if is_sampled && resolution_ms == entry_ms {
            0
        } else {
            resolution_ms
        };
        Self {
            from_ms,
            to_ms,
            oldest_ms,
            tier,
            step_ms,
            resolution_ms,
        }
    }
}

impl Plan {
    /// Returns an empty grid for this plan's points.
    pub fn new_grid(&self, wanted: &MetricSelection) -> Grid {
        Grid::new(self.from_ms, self.to_ms, self.step_ms, wanted.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1000;
    const MINUTE: u64 = 60 * SECOND;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    const NOW: u64 = 1000 * DAY;

    /// Returns the chosen tier and the resolution for a span that ends now, on a server that has
    /// run for `reach_ms`.
    fn plan_tier_and_resolution(reach_ms: u64, span_ms: u64, points: u32) -> (usize, u64) {
        let tier = |resolution_ms: u64, keep_ms: u64| {
            let oldest_ms = (NOW - keep_ms.min(reach_ms)) / resolution_ms * resolution_ms;
            Tier {
                resolution_ms,
                oldest_ms,
                is_sampled: resolution_ms == SECOND,
            }
        };
        let tiers = [
            tier(SECOND, 10 * MINUTE),
            tier(10 * SECOND, 2 * DAY),
            tier(MINUTE, 30 * DAY),
            tier(15 * MINUTE, 365 * DAY),
        ];
        let request = SpanRequest {
            from_ms: NOW - span_ms,
            to_ms: NOW,
            points,
            resolution_ms: None,
            wanted: MetricSelection::select_overview(),
        };
        let plan = Plan::new(&request, &tiers);
        assert!(span_ms / plan.resolution_ms <= points.into());
        (plan.tier, plan.resolution_ms)
    }

    #[test]
    fn coarsest_sufficient_tier_is_chosen() {
        for (span_ms, expected) in [
            (MINUTE, (0, SECOND)),
            (10 * MINUTE, (0, SECOND)),
            (HOUR, (1, 10 * SECOND)),
            (6 * HOUR, (2, MINUTE)),
            (DAY, (2, 3 * MINUTE)),
            (7 * DAY, (3, 30 * MINUTE)),
            (30 * DAY, (3, 75 * MINUTE)),
            (365 * DAY, (3, 59 * 15 * MINUTE)),
        ] {
            assert_eq!(
                plan_tier_and_resolution(365 * DAY, span_ms, 600),
                expected,
                "{span_ms}"
            );
        }
    }

    #[test]
    fn requested_resolution_is_multiple_of_tier() {
        let tiers = [
            (SECOND, 10 * MINUTE),
            (10 * SECOND, 2 * DAY),
            (MINUTE, 30 * DAY),
            (15 * MINUTE, 365 * DAY),
        ];
        let tiers = tiers.map(|(resolution_ms, keep_ms)| Tier {
            resolution_ms,
            oldest_ms: NOW - keep_ms,
            is_sampled: resolution_ms == SECOND,
        });
        for (span_ms, asked_ms, expected) in [
            (5 * MINUTE, SECOND, (0, SECOND, 0)),
            (5 * MINUTE, 7 * SECOND, (0, 7 * SECOND, 7 * SECOND)),
            (2 * HOUR, MINUTE, (2, MINUTE, MINUTE)),
            (119 * MINUTE, HOUR, (3, HOUR, HOUR)),
            (DAY, 90 * SECOND, (1, 90 * SECOND, 90 * SECOND)),
            (DAY, 8 * MINUTE, (2, 8 * MINUTE, 8 * MINUTE)),
            (3 * DAY, 10 * SECOND, (2, MINUTE, MINUTE)),
            (HOUR, SECOND, (1, 10 * SECOND, 10 * SECOND)),
        ] {
            let (from_ms, to_ms, wanted) =
                (NOW - span_ms, NOW - 1, MetricSelection::select_overview());
            let request = SpanRequest {
                from_ms,
                to_ms,
                points: 1,
                resolution_ms: Some(asked_ms),
                wanted,
            };
            let Plan {
                tier,
                resolution_ms,
                step_ms,
                ..
            } = Plan::new(&request, &tiers);
            assert_eq!(
                (tier, resolution_ms, step_ms),
                expected,
                "{span_ms} {asked_ms}"
            );
        }
    }

    #[test]
    fn span_beyond_tier_uses_coarser_tier() {
        assert_eq!(
            plan_tier_and_resolution(365 * DAY, 11 * MINUTE, 5000),
            (1, 10 * SECOND)
        );
        assert_eq!(
            plan_tier_and_resolution(365 * DAY, 3 * DAY, 5000),
            (2, MINUTE)
        );
        assert_eq!(
            plan_tier_and_resolution(365 * DAY, 31 * DAY, 5000),
            (3, 15 * MINUTE)
        );
    }

    #[test]
    fn new_server_returns_fine_points_for_long_spans() {
        let tiers = [Tier {
            resolution_ms: SECOND,
            oldest_ms: NOW - 5 * SECOND,
            is_sampled: true,
        }];
        let request = |span_ms| SpanRequest {
            from_ms: NOW - span_ms,
            to_ms: NOW,
            points: 600,
            resolution_ms: None,
            wanted: MetricSelection::select_overview(),
        };
        let plan = Plan::new(&request(10 * MINUTE), &tiers);
        assert_eq!(
            (plan.from_ms, plan.oldest_ms, plan.step_ms),
            (NOW - 5 * SECOND, NOW - 5 * SECOND, 0)
        );
        assert_eq!(Plan::new(&request(30 * DAY), &tiers), plan);
        let none = Plan::new(&request(HOUR), &[]);
        assert_eq!((none.from_ms, none.oldest_ms), (NOW, NOW));
    }

    #[test]
    fn finer_tier_wins_despite_rounded_start() {
        let tier = |resolution_ms, oldest_ms| Tier {
            resolution_ms,
            oldest_ms,
            is_sampled: false,
        };
        let request = SpanRequest {
            from_ms: 295_000,
            to_ms: 311_000,
            points: 5000,
            resolution_ms: None,
            wanted: MetricSelection::select_overview(),
        };
        let plan = |oldest_ms| {
            let plan = Plan::new(&request, &[tier(10_000, 300_000), tier(60_000, oldest_ms)]);
            (plan.resolution_ms, plan.oldest_ms)
        };
        assert_eq!(plan(260_000), (10_000, 300_000));
        assert_eq!(plan(240_000), (60_000, 240_000));
    }
}
