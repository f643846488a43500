//! The metrics for Prometheus at `/metrics`. They are written from memory, without waiting for the
//! driver.
//!
//! - [`negotiate`] chooses the format, [`text`] writes it; [`shared`] writes each page once for all
//!   clients, and in advance.
//! - [`scrape`] selects the valid data of each GPU.
//! - [`health`], [`fields`], [`details`], [`jobs`], [`owners`] and [`processes`] have gpumon's own
//!   names, in base units.
//! - [`dcgm`] has the names of dcgm-exporter, for its dashboards.
//!
//! Absent readings have no series. Readings from before a GPU hung, or before the collector ended,
//! are not repeated.

mod dcgm;
mod details;
mod fields;
mod health;
mod jobs;
mod negotiate;
mod owners;
mod page_key;
mod processes;
mod scrape;
mod shared;
mod text;

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Query, State, rejection::QueryRejection},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use gpumon_probe::model::now_ms;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::{
    task::spawn_blocking,
    time::{Duration, Instant, sleep_until},
};

pub(crate) use self::page_key::{Names, PageKey, Reader};
pub(crate) use self::shared::SharedPages;
use self::{
    dcgm::Version,
    scrape::Scrape,
    text::{Format, Page},
};
use crate::{
    app::AppState,
    auth::{Client, Scope},
    encoder::gzip,
    hub::{Hub, Known},
    respond::{Resource, accepts_gzip, respond_encoded},
    view::View,
};

/// The minimum time between two pages that are written in advance.
const LEAST_BETWEEN: Duration = Duration::from_millis(800);

/// The query of `/metrics`: the names of metrics, and whether links are included.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MetricsQuery {
    /// The names of the metrics.
    #[serde(default)]
    format: Names,
    /// Whether to include the metrics of each link, which have many series.
    #[serde(default)]
    links: bool,
}

/// Returns the content types of all formats.
#[cfg(test)]
pub(crate) fn content_types() -> [&'static str; 2] {
    [Format::Text, Format::OpenMetrics].map(Format::content_type)
}

/// Returns the metrics page with the names in the query.
pub(crate) async fn metrics(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    query: Result<Query<MetricsQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Response {
    match query {
        Ok(Query(query)) => answer(&app, &headers, &client, &query).await,
        Err(error) => {
            let hint = "ask for format=gpumon, dcgm or dcgm-4.9, and links=true or false";
            (
                StatusCode::BAD_REQUEST,
                format!("{}; {hint}\n", error.body_text()),
            )
                .into_response()
        }
    }
}

/// Returns the page of `/metrics/dcgm`, for clients that cannot set a query.
pub(crate) async fn dcgm(
    app: State<AppState>,
    client: Extension<Client>,
    headers: HeaderMap,
) -> Response {
    answer(
        &app,
        &headers,
        &client.0,
        &MetricsQuery {
            format: Names::Dcgm,
            links: false,
        },
    )
    .await
}

/// Returns the page of `/metrics/dcgm-4.9`.
pub(crate) async fn dcgm_49(
    app: State<AppState>,
    client: Extension<Client>,
    headers: HeaderMap,
) -> Response {
    answer(
        &app,
        &headers,
        &client.0,
        &MetricsQuery {
            format: Names::Dcgm49,
            links: false,
        },
    )
    .await
}

/// Returns one of few shared pages. No page contains paths of notebooks or command lines, or is
/// written for a single user.
async fn answer(
    app: &AppState,
    headers: &HeaderMap,
    client: &Client,
    query: &MetricsQuery,
) -> Response {
    let MetricsQuery {
        format: names,
        links,
    } = *query;
    // The names of dcgm-exporter's counters are not valid for counters in OpenMetrics.
    let format = if names == Names::Gpumon {
        negotiate::format(headers)
    } else {
        Format::Text
    };
    let processes = app.live.borrow().process_metrics;
    let is_scraper = client
        .identity
        .as_ref()
        .is_some_and(|identity| identity.scope == Scope::Metrics);
    let reader = if is_scraper {
        Reader::Trusted
    } else {
        Reader::of(&View::of(client, app.show_processes).await)
    };
    let key = PageKey {
        names,
        links,
        processes,
        reader,
        format,
        gzip: accepts_gzip(headers),
    };
    let encoders = Arc::clone(&app.encoders);
    let (resource, content_type) = (Resource::Metrics(key), format.content_type());
    let answer = respond_encoded(
        app,
        key.gzip,
        client.who(),
        View::ANYBODY,
        resource,
        content_type,
        move |hub| {
            encoders
                .metrics_pages
                .get(key, hub.state_change(), || key.bytes(hub))
        },
    );
    let mut answer = answer.await;
    answer.headers_mut().insert(
        header::VARY,
        HeaderValue::from_static("accept, accept-encoding"),
    );
    answer
}

/// Writes the pages of regular clients in advance after each sample, so that they do not have to
/// wait. This function never returns.
pub(crate) async fn keep_ready(app: &AppState) {
    let mut samples = app.hub.samples();
    while samples.changed().await.is_ok() {
        let begun = Instant::now();
        for key in app.encoders.metrics_pages.wanted() {
            let (hub, encoders) = (Arc::clone(&app.hub), Arc::clone(&app.encoders));
            let renew = move || {
                let change = hub.state_change();
                encoders
                    .metrics_pages
                    .renew(key, change, || key.bytes(&hub));
            };
            let _ = spawn_blocking(renew).await;
        }
        // Faster samples are only taken for viewers, and metrics do not need them.
        sleep_until(begun + LEAST_BETWEEN).await;
    }
}

impl PageKey {
    fn bytes(self, hub: &Hub) -> Vec<u8> {
        let known = hub.known();
        let known = known.seen_by(&self.reader.view());
        let text = self.write(&known).into_bytes();
        if self.gzip { gzip(&text) } else { text }
    }

    fn write(self, known: &Known) -> String {
        let scrape = Scrape::new(known, now_ms());
        let mut page = Page::new(self.format);
        match self.names {
            Names::Gpumon => self.write_own(&mut page, &scrape),
            Names::Dcgm => dcgm::write(&mut page, &scrape, Version::Old),
            Names::Dcgm49 => dcgm::write(&mut page, &scrape, Version::Renamed),
        }
        page.into_text()
    }

    fn write_own(self, page: &mut Page, scrape: &Scrape<'_>) {
        health::write(page, scrape);
        fields::gpu(page, scrape);
        fields::slow(page, scrape);
        details::write(page, scrape);
        if self.links {
            details::by_link(page, scrape);
        }
        jobs::write(page, scrape);
        owners::write(page, scrape);
        fields::mig(page, scrape);
        fields::host(page, scrape);
        if self.processes {
            processes::write(page, scrape);
        }
    }
}

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
