//! What happened, in the words of the scenarios.

use sandgate_protocol::{AnsweredBy, Event, ExecApprovalRequest, PROTECTED_NAMES, SandboxType};
use sandgate_runtime::audit::{DecidedBy, Record, RiskClass};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What was seen of a case.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) story: Vec<String>,
    pub(crate) result: String,
    pub(crate) audit: Vec<String>,
    pub(crate) made: Vec<String>,
    /// How the first command was judged.
    pub(crate) class: Option<String>,
}

/// The directories of a case, by the names that the scenarios have for them.
pub(crate) struct Places {
    pub(crate) base: tempfile::TempDir,
}

impl Places {
    /// Makes the directories, with what every scenario finds there: notes, a tool that tells what
    /// confines it, and a key that nobody should read.
    pub(crate) fn new(given: &[String]) -> Self {
        // Not below `/tmp`, which a confined command may write to.
        let base = tempfile::Builder::new().prefix("sg-").tempdir_in("/var/tmp").unwrap();
        let places = Self { base };
        places.write("ws/notes", "some notes\n");
        places.write("ws/tool", "#!/bin/sh\necho \"confined by ${CODEX_SANDBOX:-nothing}\"\n");
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(places.path("ws/tool"), executable).unwrap();
        places.write("outside/kept", "");
        places.write("home/.ssh/id_ed25519", "a key\n");
        places.write("codex/.keep", "");
        for file in given {
            places.write(&format!("ws/{file}"), "");
        }
        places
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.base.path().join(name)
    }

    /// A text of a scenario with the directories put in.
    pub(crate) fn put_in(&self, text: &str) -> String {
        let base = self.base.path().display();
        ["ws", "outside", "home"].into_iter().fold(text.to_owned(), |text, name| {
            text.replace(&format!("{{{name}}}"), &format!("{base}/{name}"))
        })
    }

    /// A text that was seen, with the directories taken out.
    pub(crate) fn take_out(&self, text: &str) -> String {
        let base = self.base.path().display();
        ["ws", "outside", "home"].into_iter().fold(text.to_owned(), |text, name| {
            text.replace(&format!("{base}/{name}"), &format!("{{{name}}}"))
        })
    }

    /// Every file and directory with what it holds, but for the person's settings.
    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        for name in ["ws", "outside", "home"] {
            collect(&self.path(name), &mut files);
        }
        files
    }

    /// What keeps protected names free in writable roots, which must go with the runtime.
    pub(crate) fn placeholders(&self) -> Vec<String> {
        let files = self.files();
        let is_one = |name: &&String| self.is_placeholder(name, &files);
        files.keys().filter(is_one).cloned().collect()
    }

    fn is_placeholder(&self, name: &str, files: &BTreeMap<String, Vec<u8>>) -> bool {
        let is_root = |root: &str| Path::new(name).parent() == Some(&self.path(root));
        let ends = |protected: &str| name.ends_with(&format!("/{protected}/"));
        let is_protected = PROTECTED_NAMES.iter().any(|protected| ends(protected));
        let in_root = is_root("ws") || is_root("outside");
        is_protected && in_root && !files.keys().any(|file| file != name && file.starts_with(name))
    }

    /// What is new or has changed since, but for what only keeps names free.
    pub(crate) fn made_since(&self, before: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
        let mut after = self.files();
        for placeholder in self.placeholders() {
            after.remove(&placeholder);
        }
        let gone = before.keys().filter(|name| !after.contains_key(*name));
        let gone = gone.map(|name| format!("gone: {name}"));
        let new = after.iter().filter(|(name, content)| before.get(*name) != Some(content));
        let made = new.map(|(name, _)| name.clone()).chain(gone);
        made.map(|name| self.take_out(&name)).collect()
    }
}

fn collect(directory: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let name = entry.path().display().to_string();
        match entry.file_type().unwrap().is_dir() {
            true => {
                collect(&entry.path(), files);
                files.insert(format!("{name}/"), Vec::new());
            }
            false => drop(files.insert(name, std::fs::read(entry.path()).unwrap_or_default())),
        }
    }
}

/// An event, in a line for each thing that a person would want to know of it.
pub(crate) fn lines(event: &Event, places: &Places) -> Vec<String> {
    let lines = match event {
        Event::ExecCommandBegin(begin) => match begin.sandbox {
            SandboxType::None => vec!["runs without a sandbox".to_owned()],
            _ => vec!["runs in the sandbox".to_owned()],
        },
        Event::ExecCommandEnd(end) => {
            let mut lines: Vec<String> =
                end.output.denials.evidence.iter().map(|one| format!("  blocked: {one}")).collect();
            lines.push(format!("  exit code {}", end.output.exit_code));
            lines
        }
        Event::ExecApprovalRequest(request) => asked(request),
        Event::ApprovalResponse(response) => {
            let by = match &response.answered_by {
                AnsweredBy::Person(_) => "a person",
                AnsweredBy::Timeout => "nobody in time",
                AnsweredBy::Nobody => "nobody",
                AnsweredBy::Cancelled => "nobody, because the work was stopped",
            };
            vec![format!("answered by {by}: {}", response.decision.name())]
        }
        Event::Error(notice) => vec![format!("error: {}", notice.message)],
        Event::Warning(notice) => vec![format!("warning: {}", notice.message)],
        _ => Vec::new(),
    };
    lines.iter().map(|line| places.take_out(line)).collect()
}

fn asked(request: &ExecApprovalRequest) -> Vec<String> {
    let mut lines = vec![format!("asked: {}", request.reason)];
    lines.extend(request.justification.iter().map(|why| format!("  it says: {why}")));
    lines.extend(request.denials.iter().map(|denial| format!("  blocked: {denial}")));
    lines.extend(
        request.grant_offer.iter().map(|offer| format!("  could be granted: {}", offer.summary)),
    );
    lines.extend(
        request.proposed_rule.iter().map(|rule| format!("  could be a rule: {}", rule.join(" "))),
    );
    let yes = if request.without_sandbox { "without a sandbox" } else { "as the mode says" };
    lines.push(format!("  yes means: {yes}"));
    lines
}

/// The decisions of a log, and how the first command was judged.
pub(crate) fn decisions(codex_home: &Path) -> (Vec<String>, Option<String>) {
    let directory = sandgate_runtime::audit::audit_directory(codex_home);
    assert!(sandgate_runtime::audit::verify(&directory).unwrap().is_intact());
    let mut decisions = Vec::new();
    let mut class = None;
    for entry in sandgate_runtime::audit::entries(&directory, None).unwrap() {
        match entry.unwrap().record {
            Record::Judged(judged) => {
                let word = match judged.class {
                    RiskClass::Safe => "safe",
                    RiskClass::Unknown => "unknown",
                    RiskClass::Dangerous => "dangerous",
                };
                class.get_or_insert(word.to_owned());
            }
            Record::Decided(decided) => {
                let by = match decided.by {
                    DecidedBy::Policy => "the policy",
                    DecidedBy::Rule { .. } => "a rule",
                    DecidedBy::Cache => "an earlier answer",
                    DecidedBy::Person { .. } => "a person",
                    DecidedBy::Timeout => "nobody in time",
                    DecidedBy::CalledOff => "nobody, it was called off",
                };
                let kind = serde_json::to_value(decided.decision).unwrap();
                let attempt = decided.attempt;
                decisions.push(format!("{attempt}: {} by {by}", kind.as_str().unwrap()));
            }
            _ => {}
        }
    }
    (decisions, class)
}

/// Whether a text is what is expected; `…` stands for anything.
pub(crate) fn matches(expected: &str, seen: &str) -> bool {
    let mut pieces = expected.split('…');
    let Some(mut rest) = pieces.next().and_then(|first| seen.strip_prefix(first)) else {
        return false;
    };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    true
}
