//! The audit log, for the person.

use super::body::Query;
use super::problem::Problem;
use super::server::Server;
use axum::extract::State;
use jiff::{Timestamp, ToSpan as _};
use sandgate_runtime::audit::{
    AuditEntry, AuditError, DecisionKind, Record, audit_directory, entries,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// How many records are given at once, at the most.
const MOST_RECORDS: usize = 500;

/// How far back figures go if nothing else is said.
const USUAL_DAYS: i64 = 7;

/// Which records are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    /// Only records with a greater number, the oldest first. Without it, the newest first.
    after: Option<u64>,
    /// Only records with a smaller number.
    before: Option<u64>,
    /// How many at the most.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// Only records that have this text somewhere, in upper or lower case.
    q: Option<String>,
    /// Only records of this kind, such as `began`.
    kind: Option<String>,
    /// Only records of this session.
    session: Option<String>,
}

/// Records.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Records {
    #[schema(value_type = Vec<Object>)]
    records: Vec<AuditEntry>,
    /// What `after` or `before` must be for the next page, if there may be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
    /// How many lines were come by that are no records.
    unreadable: u64,
}

/// Which figures are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WantedFigures {
    /// How long a bucket is.
    #[param(inline)]
    bucket: Option<Bucket>,
    /// Since when; a week ago if it is not said.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
}

/// How long a bucket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bucket {
    /// An hour.
    #[default]
    Hour,
    /// A day, in UTC.
    Day,
}

/// What happened over time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Figures {
    buckets: Vec<Figure>,
    /// How many lines were come by that are no records.
    unreadable: u64,
}

/// What happened in a stretch of time.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Figure {
    /// When it begins.
    #[schema(value_type = String, format = DateTime)]
    start: Timestamp,
    /// Commands that were started.
    commands: u64,
    /// Questions that a person answered with yes.
    approvals: u64,
    /// What was refused, by a person or by the policy.
    denials: u64,
}

/// Shows what was recorded. It is not verified here: `sandgate audit verify` does that.
#[utoipa::path(get, path = "/audit", tag = "audit", params(Wanted),
    responses((status = 200, body = Records)))]
pub(super) async fn list(
    State(server): State<Arc<Server>>,
    Query(wanted): Query<Wanted>,
) -> Result<axum::Json<Records>, Problem> {
    let limit = wanted.limit.unwrap_or(100);
    // The numbers that JSON's readers can be trusted with.
    let is_number = |number: Option<u64>| number.is_none_or(|number| i64::try_from(number).is_ok());
    if !is_number(wanted.after) || !is_number(wanted.before) {
        return Err(Problem::bad("there are no such numbers"));
    }
    if !(1..=MOST_RECORDS).contains(&limit) {
        return Err(Problem::bad(format!("limit is 1 to {MOST_RECORDS}")));
    }
    let read = read(&server, None, move |all| {
        let mut records: VecDeque<AuditEntry> = VecDeque::new();
        for entry in all {
            if wanted.before.is_some_and(|before| entry.seq >= before) {
                break;
            }
            if !wanted.is(&entry) {
                continue;
            }
            records.push_back(entry);
            match (wanted.after, records.len() > limit) {
                (Some(_), true) => break,
                (None, true) => drop(records.pop_front()),
                (_, false) => {}
            }
        }
        let is_forward = wanted.after.is_some();
        let mut records = Vec::from(records);
        let more = is_forward && records.len() > limit;
        records.truncate(limit);
        if !is_forward {
            records.reverse();
        }
        let last = records.last().map(|entry| entry.seq);
        let next = last.filter(|last| match is_forward {
            true => more,
            false => records.len() == limit && *last > 1,
        });
        (records, next)
    });
    let ((records, next), unreadable) = read.await?;
    Ok(axum::Json(Records { records, next, unreadable }))
}

/// How much happened over time.
#[utoipa::path(get, path = "/audit/stats", tag = "audit", params(WantedFigures),
    responses((status = 200, body = Figures)))]
pub(super) async fn stats(
    State(server): State<Arc<Server>>,
    Query(wanted): Query<WantedFigures>,
) -> Result<axum::Json<Figures>, Problem> {
    let week = || Timestamp::now().checked_sub((USUAL_DAYS * 24).hours()).ok();
    let since = wanted.since.or_else(week);
    let seconds = match wanted.bucket.unwrap_or_default() {
        Bucket::Hour => 3_600,
        Bucket::Day => 86_400,
    };
    let read = read(&server, since, move |all| {
        let mut buckets: BTreeMap<i64, Figure> = BTreeMap::new();
        for entry in all {
            let start = entry.time.as_second().div_euclid(seconds) * seconds;
            let Ok(time) = Timestamp::from_second(start) else { continue };
            let empty = Figure { start: time, commands: 0, approvals: 0, denials: 0 };
            let figure = buckets.entry(start).or_insert(empty);
            match &entry.record {
                Record::Began(_) => figure.commands += 1,
                Record::Decided(decision) => match decision.decision {
                    DecisionKind::Approved
                    | DecisionKind::ApprovedForSession
                    | DecisionKind::ApprovedWithRule
                    | DecisionKind::ApprovedWithGrant => figure.approvals += 1,
                    DecisionKind::Denied | DecisionKind::Aborted | DecisionKind::Forbidden => {
                        figure.denials += 1;
                    }
                    DecisionKind::Allowed => {}
                },
                _ => {}
            }
        }
        buckets.into_values().collect()
    });
    let (buckets, unreadable) = read.await?;
    Ok(axum::Json(Figures { buckets, unreadable }))
}

/// Folds the records since a time, where that may block, and counts the lines that are none. What a file
/// that cannot be read would have had is not left out in silence: then there is no answer.
async fn read<T: Send + 'static>(
    server: &Server,
    since: Option<Timestamp>,
    fold: impl FnOnce(&mut dyn Iterator<Item = AuditEntry>) -> T + Send + 'static,
) -> Result<(T, u64), Problem> {
    let home = server.settings.clone();
    let read = move |_: &dyn crate::opener::Opener| {
        let Some(home) = home else { return Ok((fold(&mut std::iter::empty()), 0)) };
        let mut all = entries(&audit_directory(&home), since)?;
        let mut failed = None;
        let folded = fold(&mut std::iter::from_fn(|| match all.next()? {
            Ok(entry) => Some(entry),
            Err(error) => {
                failed = Some(error);
                None
            }
        }));
        match failed {
            Some(error) => Err::<_, AuditError>(error),
            None => Ok((folded, all.unreadable())),
        }
    };
    server.blocking(read).await?.map_err(Problem::failed)
}

impl Wanted {
    fn is(&self, entry: &AuditEntry) -> bool {
        if self.after.is_some_and(|after| entry.seq <= after)
            || self.session.as_ref().is_some_and(|session| *session != entry.session)
        {
            return false;
        }
        if self.kind.is_none() && self.q.is_none() {
            return true;
        }
        let Ok(record) = serde_json::to_value(&entry.record) else { return false };
        let is_kind = self.kind.as_deref().is_none_or(|kind| record["type"] == kind);
        is_kind
            && self
                .q
                .as_ref()
                .is_none_or(|text| record.to_string().to_lowercase().contains(&text.to_lowercase()))
    }
}
