//! The commands that begin with a slash.

/// One of them.
pub(crate) struct Slash {
    pub(crate) name: &'static str,
    pub(crate) argument: &'static str,
    pub(crate) about: &'static str,
}

const fn slash(name: &'static str, argument: &'static str, about: &'static str) -> Slash {
    Slash { name, argument, about }
}

pub(crate) const COMMANDS: &[Slash] = &[
    slash("status", "", "model, directory, policies, sandbox, tokens"),
    slash("approvals", "[POLICY]", "when you are asked: untrusted, on-failure, on-request, never"),
    slash(
        "sandbox",
        "[MODE]",
        "what commands may touch: read-only, workspace-write, danger-full-access",
    ),
    slash("model", "[NAME]", "which model answers; PROVIDER:NAME changes who serves it"),
    slash("diff", "", "what the turns of this session changed"),
    slash("compact", "", "sum up the conversation to make room"),
    slash("review", "", "have the model look at what is not committed"),
    slash("processes", "", "live processes: attach, send keys, kill"),
    slash("audit", "", "what was decided and run in this session"),
    slash("trust", "[yes|no]", "whether you trust this directory"),
    slash("help", "", "keys and commands"),
    slash("quit", "", "end; so does ctrl-d"),
];

/// Those whose names begin like this.
pub(crate) fn beginning(word: &str) -> Vec<&'static Slash> {
    COMMANDS.iter().filter(|command| command.name.starts_with(word)).collect()
}

/// The one that is meant, and what stands behind it.
pub(crate) fn find(text: &str) -> Option<(&'static Slash, &str)> {
    let text = text.strip_prefix('/')?;
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let command = COMMANDS.iter().find(|command| command.name == word)?;
    Some((command, rest.trim()))
}
