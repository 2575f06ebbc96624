//! A rule that would have spared the person a question, offered together with the question.

use super::RuleSandbox;
use crate::judge::Judgement;

/// A rule to allow all commands that begin with some words. Made by [`propose`] only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedRule {
    prefix: Vec<String>,
    sandbox: RuleSandbox,
}

impl ProposedRule {
    /// The words.
    pub fn prefix(&self) -> &[String] {
        &self.prefix
    }

    /// Whether the commands leave the sandbox.
    pub fn sandbox(&self) -> RuleSandbox {
        self.sandbox
    }

    /// The same rule for commands that leave the sandbox, if there may be one.
    pub fn leaving_the_sandbox(self) -> Option<Self> {
        Some(Self { sandbox: RuleSandbox::Bypass, ..self })
    }
}

/// The rule to offer with a question about a command: its program and the first argument.
pub fn propose(judgement: &Judgement, _suggested: Option<&[String]>) -> Option<ProposedRule> {
    let [command] = judgement.reading.commands.as_slice() else { return None };
    let prefix: Vec<String> = command.words.iter().take(2).map(|word| word.text.clone()).collect();
    let understood = judgement.reading.opaque.is_none() && prefix.len() == 2;
    understood.then_some(ProposedRule { prefix, sandbox: RuleSandbox::Keep })
}
