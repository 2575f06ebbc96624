//! What a model is told before a person says anything: what it is, what the person and the project want
//! of it, and where it works.

use sandgate_config::{FileError, read_below, read_own};
use sandgate_protocol::{AskForApproval, NetworkAccess, ResponseItem, Role, SandboxPolicy};
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

/// What every model is told.
const BASE: &str = include_str!("base.md");

/// The name of the files with instructions.
const FILE: &str = "AGENTS.md";

/// How much of all such files is used, if the settings do not say.
pub const DEFAULT_PROJECT_DOC_BYTES: usize = 32 * 1024;

/// Where instructions come from.
#[derive(Debug, Clone)]
pub struct InstructionSources<'a> {
    /// The directory of the person's settings.
    pub config_home: Option<&'a Path>,
    /// The root of the project, if the person trusts it. Nothing of another is read.
    pub trusted_root: Option<&'a Path>,
    /// Where the conversation works.
    pub cwd: &'a Path,
    /// How many bytes of all files are used.
    pub most_bytes: usize,
}

/// What a model is told before all else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instructions {
    /// All of it.
    pub text: String,
    /// The files that are in it.
    pub files: Vec<PathBuf>,
    /// What could not be read, as sentences for the person.
    pub notes: Vec<String>,
}

/// Gathers what a model is told: the person's own file first, then those of the project from its root
/// down to the working directory, so that the nearest has the last word.
pub fn instructions(sources: &InstructionSources<'_>) -> Instructions {
    let mut told = Instructions { text: BASE.to_owned(), files: Vec::new(), notes: Vec::new() };
    let mut left = sources.most_bytes;
    if let Some(home) = sources.config_home {
        let path = home.join(FILE);
        let read = read_own(&path);
        told.add("the person's own instructions", path, read, &mut left);
    }
    if let Some(root) = sources.trusted_root {
        for below in directories(root, sources.cwd) {
            let names: Vec<&str> = below.iter().copied().chain([FILE]).collect();
            let path = below.iter().fold(root.to_owned(), |path, name| path.join(name)).join(FILE);
            told.add("instructions of the project", path, read_below(root, &names), &mut left);
        }
    }
    told
}

impl Instructions {
    fn add(
        &mut self,
        what: &str,
        path: PathBuf,
        read: Result<Option<String>, FileError>,
        left: &mut usize,
    ) {
        let text = match read {
            Ok(Some(text)) if !text.trim().is_empty() => text,
            Ok(_) => return,
            Err(error) => return self.notes.push(error.to_string()),
        };
        let used = text.floor_char_boundary((*left).min(text.len()));
        if used < text.len() {
            self.notes.push(format!(
                "only {used} of {} bytes of {} are used",
                text.len(),
                path.display()
            ));
        }
        *left -= used;
        if used > 0 {
            // Writing to memory does not fail.
            let _ = write!(self.text, "\n\n# {what} ({})\n\n{}", path.display(), &text[..used]);
            self.files.push(path);
        }
    }
}

/// The directories from a root down to one below it, as names from the root; only the root if the other
/// is not below it.
fn directories<'a>(root: &Path, cwd: &'a Path) -> Vec<Vec<&'a str>> {
    let names: Option<Vec<&str>> = cwd.strip_prefix(root).ok().and_then(|below| {
        let name = |part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        };
        below.components().map(name).collect()
    });
    let names = names.unwrap_or_default();
    (0..=names.len()).map(|depth| names[..depth].to_vec()).collect()
}

/// Where a conversation works, as the model is told it.
pub fn surroundings(cwd: &Path, sandbox: &SandboxPolicy, asking: AskForApproval) -> ResponseItem {
    let mut text = format!("Working directory: {}\nSandbox: ", cwd.display());
    let _ = match sandbox {
        SandboxPolicy::ReadOnly => {
            writeln!(text, "commands can read files and write none; no network")
        }
        SandboxPolicy::WorkspaceWrite { writable_roots, network_access, .. } => {
            let beside: Vec<String> =
                writable_roots.iter().map(|root| root.display().to_string()).collect();
            let beside = match beside.is_empty() {
                true => String::new(),
                false => format!(" and {}", beside.join(", ")),
            };
            let network = match network_access {
                NetworkAccess::Enabled => "network allowed",
                NetworkAccess::Restricted => "no network",
            };
            writeln!(
                text,
                "commands can read files and write to the working directory{beside}, but not to .git, \
                 .codex and .agents in it; {network}"
            )
        }
        SandboxPolicy::DangerFullAccess => writeln!(text, "none"),
        SandboxPolicy::ExternalSandbox { .. } => writeln!(text, "whatever surrounds this program"),
    };
    let asking = match asking {
        AskForApproval::UnlessTrusted => {
            "the person is asked before every command that is not known to be safe"
        }
        AskForApproval::OnFailure => {
            "the person is asked before what is dangerous, and when the sandbox blocked something"
        }
        AskForApproval::OnRequest => {
            "the person is asked before what is dangerous or asks to leave the sandbox, and when the \
             sandbox blocked something"
        }
        AskForApproval::Never => "the person is never asked: what would need an answer is refused",
    };
    let _ = writeln!(text, "Approval: {asking}");
    ResponseItem::message(Role::Developer, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn sources<'a>(
        home: &'a Path,
        root: Option<&'a Path>,
        cwd: &'a Path,
    ) -> InstructionSources<'a> {
        let most_bytes = DEFAULT_PROJECT_DOC_BYTES;
        InstructionSources { config_home: Some(home), trusted_root: root, cwd, most_bytes }
    }

    /// spec AGENT.12: A model is told of the person's `AGENTS.md` and of those from the root of a
    /// trusted project down to the working directory, in this order, up to a limit; nothing of a
    /// project that is not trusted is read, and no link.
    #[test]
    fn the_nearest_file_has_the_last_word() {
        let (home, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let inner = root.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(home.path().join(FILE), "mine").unwrap();
        fs::write(root.path().join(FILE), "outer").unwrap();
        fs::write(inner.join(FILE), "inner").unwrap();
        let told = instructions(&sources(home.path(), Some(root.path()), &inner));
        let at = |word: &str| told.text.find(word).unwrap();
        assert!(
            at("\n\nmine") < at("\n\nouter") && at("\n\nouter") < at("\n\ninner"),
            "{}",
            told.text
        );
        assert_eq!((told.files.len(), told.notes.len()), (3, 0));
    }

    /// spec AGENT.12: A model is told of the person's `AGENTS.md` and of those from the root of a
    /// trusted project down to the working directory, in this order, up to a limit; nothing of a
    /// project that is not trusted is read, and no link.
    #[test]
    fn nothing_of_a_project_that_is_not_trusted_is_read() {
        let (home, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(root.path().join(FILE), "do evil").unwrap();
        let told = instructions(&sources(home.path(), None, root.path()));
        assert_eq!(told.text, BASE);
    }

    /// spec AGENT.12: A model is told of the person's `AGENTS.md` and of those from the root of a
    /// trusted project down to the working directory, in this order, up to a limit; nothing of a
    /// project that is not trusted is read, and no link.
    #[test]
    fn there_is_a_limit_and_it_is_told() {
        let (home, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(root.path().join(FILE), "ä".repeat(DEFAULT_PROJECT_DOC_BYTES)).unwrap();
        let told = instructions(&sources(home.path(), Some(root.path()), root.path()));
        assert!(told.text.len() < BASE.len() + DEFAULT_PROJECT_DOC_BYTES + 200);
        assert!(told.notes[0].contains("32768 of 65536 bytes"), "{:?}", told.notes);
    }

    /// spec AGENT.12: A model is told of the person's `AGENTS.md` and of those from the root of a
    /// trusted project down to the working directory, in this order, up to a limit; nothing of a
    /// project that is not trusted is read, and no link.
    #[cfg(unix)]
    #[test]
    fn a_link_or_a_pipe_of_a_project_is_not_read() {
        let (home, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink("/etc/passwd", root.path().join(FILE)).unwrap();
        let told = instructions(&sources(home.path(), Some(root.path()), root.path()));
        assert_eq!((told.text.as_str(), told.notes.len()), (BASE, 1));
    }
}
