//! The questions of the person's other programs that run, which can be answered here as well.

#[cfg(unix)]
pub(super) use unix::{Elsewhere, WatchElsewhere};

#[cfg(not(unix))]
pub(super) use nowhere::{Elsewhere, WatchElsewhere};

#[cfg(unix)]
mod unix {
    use crate::http::problem::Problem;
    use sandgate_protocol::ReviewDecision;
    use sandgate_runtime::{DeskError, DeskWatch, Desks, OpenQuestion, PendingQuestion};
    use std::path::Path;

    /// The desks of the others.
    pub(in crate::http) struct Elsewhere(Option<Desks>);

    /// What lies on them, as it changes.
    pub(in crate::http) struct WatchElsewhere(Option<DeskWatch>);

    impl Elsewhere {
        pub(in crate::http) fn in_settings(settings: Option<&Path>) -> Self {
            Self(settings.map(Desks::in_settings))
        }

        /// What is open there. Programs that do not answer are left out.
        pub(in crate::http) async fn open(&self) -> Vec<OpenQuestion> {
            let Some(desks) = &self.0 else { return Vec::new() };
            let listed = desks.list().await.unwrap_or_default();
            listed.questions.into_iter().filter_map(of_another).collect()
        }

        pub(in crate::http) fn watch(&self) -> WatchElsewhere {
            WatchElsewhere(self.0.as_ref().map(Desks::watch))
        }

        pub(in crate::http) async fn answer(
            &self,
            id: &str,
            decision: ReviewDecision,
        ) -> Result<(), Problem> {
            let unknown = || Problem::not_found(format!("there is no open question {id:?}"));
            // By its whole name: here nobody types it.
            if !self.open().await.iter().any(|question| question.id == id) {
                return Err(unknown());
            }
            let Some(desks) = &self.0 else { return Err(unknown()) };
            match desks.answer(id, decision).await {
                Ok(_) => Ok(()),
                Err(DeskError::Refused(why)) => Err(Problem::conflict(why)),
                Err(error) => Err(Problem::not_found(error.to_string())),
            }
        }
    }

    impl WatchElsewhere {
        /// What is open there, whenever it has changed. Can be dropped and called again.
        pub(in crate::http) async fn next(&mut self) -> Vec<OpenQuestion> {
            let heard = match &mut self.0 {
                Some(watch) => watch.next().await,
                None => std::future::pending().await,
            };
            match heard {
                Ok(open) => open.into_iter().filter_map(of_another).collect(),
                Err(error) => {
                    tracing::warn!(%error, "the questions of other programs are not heard");
                    self.0 = None;
                    Vec::new()
                }
            }
        }
    }

    /// Our own are known better.
    fn of_another(pending: PendingQuestion) -> Option<OpenQuestion> {
        (pending.pid != std::process::id()).then_some(pending.question)
    }
}

#[cfg(not(unix))]
mod nowhere {
    use crate::http::problem::Problem;
    use sandgate_protocol::ReviewDecision;
    use sandgate_runtime::OpenQuestion;
    use std::path::Path;

    /// There are no sockets here by which programs could be asked.
    pub(in crate::http) struct Elsewhere;

    /// Nothing ever changes there.
    pub(in crate::http) struct WatchElsewhere;

    impl Elsewhere {
        pub(in crate::http) fn in_settings(_: Option<&Path>) -> Self {
            Self
        }

        pub(in crate::http) async fn open(&self) -> Vec<OpenQuestion> {
            Vec::new()
        }

        pub(in crate::http) fn watch(&self) -> WatchElsewhere {
            WatchElsewhere
        }

        pub(in crate::http) async fn answer(
            &self,
            id: &str,
            _: ReviewDecision,
        ) -> Result<(), Problem> {
            Err(Problem::not_found(format!("there is no open question {id:?}")))
        }
    }

    impl WatchElsewhere {
        pub(in crate::http) async fn next(&mut self) -> Vec<OpenQuestion> {
            std::future::pending().await
        }
    }
}
