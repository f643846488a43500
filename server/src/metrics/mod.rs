//! `/metrics`: what is known now, for Prometheus. It is written from memory, and never waits for
//! the driver.
//!
//! - [`negotiate`] chooses the format, [`text`] writes it; [`shared`] has one page for all who ask,
//!   and has it ready.
//! - [`scrape`] is what may be told of which GPU.
//! - [`health`], [`fields`], [`details`], [`jobs`], [`owners`] and [`processes`] are gpumon's own
//!   names, in base units.
//! - [`dcgm`] are the names of dcgm-exporter, for its dashboards.
//!
//! What is absent is left out. What a GPU showed before it hung, or a collector before it ended, is
//! not told again.

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

/// Between two times that pages are written ahead.
const LEAST_BETWEEN: Duration = Duration::from_millis(800);

/// How they are named.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MetricsQuery {
    /// Whose names they have.
    #[serde(default)]
    format: Names,
    /// Also those of each link, of which there are many.
    #[serde(default)]
    links: bool,
}

/// Those of the formats that there are.
#[cfg(test)]
pub(crate) fn content_types() -> [&'static str; 2] {
    [Format::Text, Format::OpenMetrics].map(Format::content_type)
}

/// `/metrics`, in the words that the query asks for.
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

/// `/metrics/dcgm`, for those who cannot set a query.
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

/// `/metrics/dcgm-4.9`.
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

/// Answers with one of few pages: none has the paths of notebooks or command lines, or is made for
/// one user alone.
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
    // Counters of dcgm-exporter have no names that OpenMetrics takes for counters.
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

/// Writes what is scraped regularly ahead, with each sample, so that no scraper waits for that.
/// Never ends.
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
        // Samples that come faster are for those who look.
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
