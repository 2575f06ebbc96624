//! The questions of the person's other programs that run, which can be answered here as well.

#[cfg(unix)]
pub(super) use unix::Elsewhere;

#[cfg(not(unix))]
pub(super) use nowhere::Elsewhere;

use super::problem::Problem;
use sandgate_runtime::OpenQuestion;
use std::sync::Arc;

/// What is open there; none before it was looked.
pub(super) type Heard = Option<Arc<[OpenQuestion]>>;

pub(super) fn unknown(id: &str) -> Problem {
    Problem::not_found(format!("there is no open question {id:?}"))
}

#[cfg(unix)]
mod unix {
    use super::{Heard, unknown};
    use crate::http::problem::Problem;
    use sandgate_protocol::ReviewDecision;
    use sandgate_runtime::{Desk, DeskError, DeskWatch, Desks, OpenQuestion, PendingQuestion};
    use std::path::Path;
    use std::sync::{Arc, OnceLock};
    use tokio::sync::watch;

    /// The desks of the others.
    pub(in crate::http) struct Elsewhere {
        desks: Option<Desks>,
        /// What lies on them. Everybody who wants to know listens to one watch: a desk takes few
        /// connections, and those who may ask here must not use them up.
        watched: OnceLock<watch::Receiver<Heard>>,
        asking: tokio::sync::Mutex<()>,
    }

    impl Elsewhere {
        /// Those in these settings that are not our own.
        pub(in crate::http) fn in_settings(settings: Option<&Path>, own: &Desk) -> Self {
            let desks = settings.map(|settings| Desks::in_settings(settings).without(own.name()));
            Self { desks, watched: OnceLock::new(), asking: tokio::sync::Mutex::default() }
        }

        /// What is open there, now and later. Programs that do not answer are left out.
        pub(in crate::http) fn watch(&self) -> watch::Receiver<Heard> {
            let begin = || match &self.desks {
                Some(desks) => {
                    let (heard, watched) = watch::channel(None);
                    tokio::spawn(listen(desks.watch(), heard));
                    watched
                }
                None => watch::channel(Some(Arc::from([]))).1,
            };
            self.watched.get_or_init(begin).clone()
        }

        /// The whole of a question. Only what the list has less of is asked for, and one at a time: a desk takes
        /// few connections.
        pub(in crate::http) async fn question(&self, id: &str) -> Result<OpenQuestion, Problem> {
            let mut watched = self.watch();
            // It fails when the server ends.
            let heard =
                watched.wait_for(Option::is_some).await.ok().and_then(|heard| heard.clone());
            let heard = heard.unwrap_or_default();
            let listed = heard.iter().find(|question| question.id == id);
            let listed = listed.ok_or_else(|| unknown(id))?;
            let Some(desks) = self.desks.as_ref().filter(|_| listed.is_cut) else {
                return Ok(listed.clone());
            };
            let _turn = self.asking.lock().await;
            desks.question(id).await.ok().flatten().ok_or_else(|| unknown(id))
        }

        pub(in crate::http) async fn answer(
            &self,
            id: &str,
            decision: ReviewDecision,
        ) -> Result<(), Problem> {
            let Some(desks) = &self.desks else { return Err(unknown(id)) };
            // By its whole name: here nobody types it.
            let listed = desks.list().await.unwrap_or_default();
            if !listed.questions.iter().any(|pending| pending.question.id == id) {
                return Err(unknown(id));
            }
            match desks.answer(id, decision).await {
                Ok(_) => Ok(()),
                Err(DeskError::Refused(why)) => Err(Problem::conflict(why)),
                Err(error) => Err(Problem::not_found(error.to_string())),
            }
        }
    }

    /// Passes on what is open, until nobody can want to know it any more.
    async fn listen(mut watch: DeskWatch, heard: watch::Sender<Heard>) {
        let mut is_failing = false;
        loop {
            let next = tokio::select! {
                next = watch.next() => next,
                () = heard.closed() => return,
            };
            match next {
                Ok(open) => {
                    is_failing = false;
                    let open = open.into_iter().map(|pending: PendingQuestion| pending.question);
                    heard.send_replace(Some(open.collect::<Vec<OpenQuestion>>().into()));
                }
                // It is looked again soon, and what was heard before stays until then.
                Err(error) => {
                    if !std::mem::replace(&mut is_failing, true) {
                        tracing::warn!(%error, "the questions of other programs are not heard");
                    }
                    heard.send_if_modified(|heard| {
                        let is_first = heard.is_none();
                        heard.get_or_insert_default();
                        is_first
                    });
                }
            }
        }
    }
}

#[cfg(not(unix))]
mod nowhere {
    use super::{Heard, unknown};
    use crate::http::problem::Problem;
    use sandgate_protocol::ReviewDecision;
    use sandgate_runtime::{Desk, OpenQuestion};
    use std::path::Path;
    use std::sync::Arc;
    use tokio::sync::watch;

    /// There are no sockets here by which programs could be asked.
    pub(in crate::http) struct Elsewhere;

    impl Elsewhere {
        pub(in crate::http) fn in_settings(_: Option<&Path>, _: &Desk) -> Self {
            Self
        }

        /// Nothing ever changes there.
        pub(in crate::http) fn watch(&self) -> watch::Receiver<Heard> {
            watch::channel(Some(Arc::from([]))).1
        }

        pub(in crate::http) async fn answer(
            &self,
            id: &str,
            _: ReviewDecision,
        ) -> Result<(), Problem> {
            Err(unknown(id))
        }

        #[expect(clippy::unused_async, reason = "elsewhere it is waited for")]
        pub(in crate::http) async fn question(&self, id: &str) -> Result<OpenQuestion, Problem> {
            Err(unknown(id))
        }
    }
}
