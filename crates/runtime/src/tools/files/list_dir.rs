//! `list_dir`: what is in a directory, down to a depth, without what git ignores.

use super::{
    MOST_SAID, Reached, careful_walk, entries, failed, look_at, off_the_loop, resolve, said_of,
    shown,
};
use crate::tools::{ToolFuture, ToolHandler, ToolInvocation, ToolSpec};
use sandgate_protocol::{CodexErr, ListDirToolCallParams, ToolOutput};
use std::fmt::Write as _;
use std::path::Path;

/// `list_dir`.
pub(crate) struct ListDirHandler;

/// How far down unless the call says otherwise, and at most.
const DEFAULT_DEPTH: u32 = 2;
const DEEPEST: u32 = 16;

/// How many entries unless the call says otherwise.
const DEFAULT_ENTRIES: u64 = 200;

impl ToolHandler for ListDirHandler {
    fn spec(&self) -> ToolSpec {
        ToolSpec::of::<ListDirToolCallParams>(
            "list_dir",
            "Lists what is in a directory and below it, without what git ignores. A \
             directory ends in /, a link in @.",
        )
    }

    fn is_mutating(&self, _: &ToolInvocation<'_>) -> bool {
        false
    }

    fn supports_parallel_tool_calls(&self) -> bool {
        true
    }

    fn handle<'a>(&'a self, invocation: ToolInvocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let params: ListDirToolCallParams = invocation.arguments()?;
            let path = resolve(params.path.as_deref().unwrap_or("."), &invocation)?;
            look_at(&path, "", &invocation)?;
            let depth = params.depth.unwrap_or(DEFAULT_DEPTH).clamp(1, DEEPEST);
            let offset = params.offset.unwrap_or(1).max(1);
            let wanted = params.limit.unwrap_or(DEFAULT_ENTRIES);
            let text = off_the_loop(invocation.turn.cancellation(), move |limit| {
                list(&path, depth, offset, wanted, || limit.is_over())
            });
            Ok(ToolOutput::text(text.await?, true))
        })
    }
}

pub(super) fn list(
    path: &Path,
    depth: u32,
    offset: u64,
    wanted: u64,
    is_over: impl Fn() -> bool + Sync,
) -> Result<String, CodexErr> {
    if !path.is_dir() {
        return Err(failed(format!("{} is not a directory", path.display())));
    }
    let (mut walk, left_out) = careful_walk(path);
    walk.max_depth(usize::try_from(depth).ok());
    let mut text = format!("{}/\n", path.display());
    let mut number = 0;
    let (entries, reached) = entries(&walk, &is_over);
    for entry in entries.iter().filter(|entry| entry.depth() > 0) {
        number += 1;
        if number < offset {
            continue;
        }
        if number - offset >= wanted || text.len() > MOST_SAID {
            let _ = writeln!(text, "[more entries follow; the next is {number}]");
            return Ok(text);
        }
        let mark = match entry.file_type() {
            Some(kind) if kind.is_dir() => "/",
            Some(kind) if kind.is_symlink() => "@",
            _ => "",
        };
        let name = shown(&entry.file_name().to_string_lossy().replace('\n', "\\n"));
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}{name}{mark}", "  ".repeat(entry.depth()));
    }
    let left_out = said_of(&left_out.beneath(path));
    if number == 0 && left_out.is_empty() {
        text.push_str("  [nothing]\n");
    } else if number < offset && number > 0 {
        return Err(failed(format!("there are only {number} entries")));
    }
    if reached == Reached::Part {
        text.push_str("[the walk was ended before all was looked at]\n");
    }
    for said in left_out {
        let _ = writeln!(text, "[{said}]");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for made in ["src/deep/deeper", ".git/objects", "target"] {
            fs::create_dir_all(directory.path().join(made)).unwrap();
        }
        for file in ["src/main.rs", "src/deep/deeper/x", "target/y", ".env", "README.md"] {
            fs::write(directory.path().join(file), "").unwrap();
        }
        fs::write(directory.path().join(".gitignore"), "target/\n").unwrap();
        directory
    }

    fn listed(depth: u32, offset: u64, wanted: u64) -> String {
        let tree = tree();
        let text = list(tree.path(), depth, offset, wanted, || false).unwrap();
        text.split_once('\n').unwrap().1.to_owned()
    }

    #[test]
    fn what_git_ignores_and_keeps_for_itself_is_left_out() {
        let all = "  .env\n  .gitignore\n  README.md\n  src/\n    deep/\n    main.rs\n";
        assert_eq!(listed(2, 1, 100), all);
    }

    #[test]
    fn a_long_list_says_where_to_go_on() {
        assert_eq!(listed(1, 2, 1), "  .gitignore\n[more entries follow; the next is 3]\n");
    }

    #[test]
    fn what_is_no_directory_is_said() {
        let tree = tree();
        let error = list(&tree.path().join("README.md"), 1, 1, 1, || false).unwrap_err();
        assert!(error.to_string().ends_with("is not a directory"), "{error}");
    }
}
