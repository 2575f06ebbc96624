//! Questions to a person, and their answers.
//!
//! A question goes out as an event and waits here; an answer comes in through an [`Approver`], which
//! only the front end that a person sits at is given. The first answer counts. Whoever asks on
//! behalf of a model has no way to answer.

mod broker;
mod shown;

pub(crate) use broker::Broker;
pub use broker::{Answer, AnswerError, Approver, Question};
pub use shown::command_text;
pub(crate) use shown::resolved_command_text;
