//! Judging for a front end, which may look at a decision but has no part in it.

use crate::RuntimeError;
use crate::git::Repositories;
use crate::resolve;
use std::path::{Path, PathBuf};

pub use sandgate_policy::explain::{
    ClassName, ExplainedAssignment, ExplainedCommand, ExplainedPattern, ExplainedProposal,
    ExplainedRedirection, ExplainedRequirement, ExplainedRule, ExplainedRuling, ExplainedTerms,
    ExplainedWord, Explanation, class_of, explain,
};
pub use sandgate_policy::rules::{Decision, Rule, Rules, obeys_files, propose};
pub use sandgate_policy::{
    ApprovalStore, Class, Judgement, Ruling, SandboxAvailability, Surroundings, Terms, judge,
};

/// Where a command would run that is started in this directory, by this person, in a session that
/// works there.
///
/// # Errors
/// When there is no such directory.
///
/// ```
/// use sandgate_runtime::policy::{Class, Rules, judge, surroundings};
///
/// let around = surroundings(&std::env::temp_dir())?;
/// let argv = ["ls", "-l"].map(str::to_owned);
/// assert_eq!(judge(&argv, &around, &Rules::default()).class, Class::Safe);
/// # Ok::<(), sandgate_runtime::RuntimeError>(())
/// ```
pub fn surroundings(directory: &Path) -> Result<Surroundings, RuntimeError> {
    let cwd = resolve::directory(directory)?;
    let git_runs = Repositories::default().runs(&cwd, &std::env::vars_os().collect());
    Ok(Surroundings { roots: vec![cwd.clone()], cwd: Some(cwd), home: home(), git_runs })
}

/// The person's home directory.
pub fn home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute())
}
