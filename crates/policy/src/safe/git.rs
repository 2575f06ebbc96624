//! git: the subcommands that only read, each with its own table of options.
//!
//! No option before the subcommand is allowed but `--no-pager`: the others choose a repository, a
//! configuration or a pager. Aliases are unknown subcommands. That a repository's configuration
//! starts nothing by itself (fsmonitor, filters, external diffs, signature programs) is for the
//! environment that the runtime sets.
//!
//! Left out everywhere: `--output` (writes), `--ext-diff`, `--textconv`, `--filters` (run),
//! `--show-signature` and `%G?` in formats (run gpg), `--submodule`, `--recurse-submodules` (obey
//! another configuration), `--help` (runs man), `-O` (orders by a file; in `grep` it runs a pager).

use super::options::{Operands, Program, Seen, named, named_in, walk};
use super::{NotSafe, shown};
use crate::command::Word;

/// What `diff`, `log`, `show` and their kin share.
#[rustfmt::skip] // A table, laid out by hand.
const DIFF: &[&str] = &[
    "abbrev[=]", "anchored=", "binary", "break-rewrites[=]", "check", "color[=]", "color-moved[=]",
    "color-moved-ws=", "color-words[=]", "compact-summary", "cumulative", "default-prefix",
    "diff-algorithm=", "diff-filter=", "dirstat[=]", "dst-prefix=", "exit-code", "find-copies[=]",
    "find-copies-harder", "find-object=", "find-renames[=]", "full-index", "function-context",
    "histogram", "ignore-all-space", "ignore-blank-lines", "ignore-cr-at-eol",
    "ignore-matching-lines=", "ignore-space-at-eol", "ignore-space-change", "ignore-submodules[=]",
    "indent-heuristic", "inter-hunk-context=", "irreversible-delete", "ita-invisible-in-index",
    "line-prefix=", "minimal", "name-only", "name-status", "no-abbrev", "no-color",
    "no-color-moved", "no-ext-diff", "no-indent-heuristic", "no-patch", "no-prefix", "no-relative",
    "no-renames", "no-textconv", "numstat", "output-indicator-context=", "output-indicator-new=",
    "output-indicator-old=", "patch", "patch-with-raw", "patch-with-stat", "patience",
    "pickaxe-all", "pickaxe-regex", "quiet", "raw", "relative[=]", "rename-empty", "shortstat",
    "src-prefix=", "stat[=]", "stat-count=", "stat-graph-width=", "stat-name-width=", "stat-width=",
    "summary", "text", "unified=", "word-diff[=]", "word-diff-regex=", "ws-error-highlight=",
];
const DIFF_FLAGS: &str = "abpqsuwzRW";
const DIFF_VALUED: &str = "GSUl";
const DIFF_ATTACHED: &str = "BCDMX";

/// How commits are chosen and ordered. Not --stdin, --filter, --use-bitmap-index: nobody needs them
/// here. Not --remerge-diff: writes temporary objects.
#[rustfmt::skip] // A table, laid out by hand.
const REVISIONS: &[&str] = &[
    "after=", "all", "all-match", "ancestry-path[=]", "author=", "author-date-order",
    "basic-regexp", "before=", "boundary", "branches[=]", "cherry", "cherry-mark", "cherry-pick",
    "committer=", "date-order", "dense", "exclude=", "extended-regexp", "first-parent",
    "fixed-strings", "full-history", "glob=", "grep=", "grep-reflog=", "ignore-missing",
    "invert-grep", "left-only", "left-right", "max-count=", "max-parents=", "merge", "merges",
    "min-parents=", "no-max-parents", "no-merges", "no-min-parents", "no-walk[=]", "not",
    "perl-regexp", "reflog", "regexp-ignore-case", "remotes[=]", "remove-empty", "reverse",
    "right-only", "show-pulls", "simplify-by-decoration", "simplify-merges", "since=",
    "since-as-filter=", "skip=", "sparse", "tags[=]", "topo-order", "until=", "walk-reflogs",
];

/// How commits are shown.
#[rustfmt::skip] // A table, laid out by hand.
const COMMITS: &[&str] = &[
    "abbrev-commit", "cc", "children", "clear-decorations", "combined-all-paths", "date=",
    "decorate[=]", "decorate-refs=", "decorate-refs-exclude=", "diff-merges=", "encoding=",
    "expand-tabs[=]", "follow", "format=", "full-diff", "graph", "log-size", "mailmap",
    "no-abbrev-commit", "no-decorate", "no-diff-merges", "no-expand-tabs", "no-graph", "no-mailmap",
    "no-notes", "no-use-mailmap", "notes[=]", "oneline", "parents", "pretty[=]", "relative-date",
    "root", "show-linear-break[=]", "show-notes[=]", "source", "use-mailmap",
];

/// `log` and what is much like it. `-L` takes a range, `-n` a number.
const LOG: Program = named("log")
    .flags("abpqsuwzRWcEFgiPmt")
    .valued("GSULln")
    .attached(DIFF_ATTACHED)
    .numbers()
    .reads()
    .long(&[DIFF, REVISIONS, COMMITS]);

const DIFFS: Program =
    named("diff").flags(DIFF_FLAGS).valued(DIFF_VALUED).attached(DIFF_ATTACHED).reads();

/// Options that make `branch` and `tag` list, so that operands are patterns or commits. Not `-l`
/// of branch: to an old git it makes a branch.
const LISTING: &[&str] = &["list", "contains", "no-contains", "merged", "no-merged", "points-at"];
const TAG_LISTING: &[&str] =
    &["list", "l", "contains", "no-contains", "merged", "no-merged", "points-at"];
const REFS: &[&str] = &[
    "color[=]",
    "contains=",
    "format=",
    "ignore-case",
    "merged=",
    "no-color",
    "no-contains=",
    "no-merged=",
    "omit-empty",
    "points-at=",
    "sort=",
];

/// Sorted by name. Subcommands with words of their own follow in [`NESTED`].
#[rustfmt::skip] // A table, laid out by hand.
const SUBCOMMANDS: &[Program] = &[
    named("blame").flags("bceflnpstw").valued("LS").attached("CM").reads().long(&[
        &["abbrev=", "color-by-age", "color-lines", "contents=", "date=", "first-parent"],
        &["ignore-rev=", "ignore-revs-file=", "incremental", "line-porcelain", "minimal"],
        &["no-abbrev", "no-progress", "porcelain", "progress", "reverse", "root", "score-debug"],
        &["show-email", "show-name", "show-number", "show-stats", "since="],
    ]),
    // Not -d, -D, -m, -M, -c, -C, -f, -t, -u, --edit-description and the rest, which change something.
    named("branch").flags("ailrv").operands(Operands::Beside(LISTING)).long(&[
        REFS,
        &["abbrev[=]", "all", "column[=]", "list", "no-abbrev", "no-column", "remotes"],
        &["show-current", "verbose"],
    ]),
    named("cat-file").flags("epstZ").reads().long(&[
        &["allow-unknown-type", "batch[=]", "batch-all-objects", "batch-check[=]", "buffer"],
        &["follow-symlinks", "mailmap", "unordered", "use-mailmap"],
    ]),
    named("check-attr").flags("az").reads().long(&[&["all", "cached", "stdin"]]),
    named("check-ignore").flags("nqvz").reads().long(&[
        &["no-index", "non-matching", "quiet", "stdin", "verbose"],
    ]),
    named("cherry").flags("v").reads().long(&[&["abbrev[=]", "verbose"]]),
    named("count-objects").flags("Hv").long(&[&["human-readable", "verbose"]]),
    // Not --dirty: writes the index. Not --broken: runs git again.
    named("describe").reads().long(&[
        &["abbrev=", "all", "always", "candidates=", "contains", "debug", "exact-match"],
        &["exclude=", "first-parent", "long", "match=", "tags"],
    ]),
    DIFFS.long(&[DIFF, &["base", "cached", "merge-base", "no-index", "ours", "staged", "theirs"]]),
    DIFFS.called("diff-files").long(&[DIFF, &["base", "ours", "theirs"]]),
    DIFFS.called("diff-index").flags("abmpqsuwzRW").long(&[DIFF, &["cached", "merge-base"]]),
    DIFFS.called("diff-tree").flags("abcmpqrstuvwzRW").long(&[
        DIFF, COMMITS, &["always", "merge-base", "no-commit-id"],
    ]),
    named("for-each-ref").flags("ps").reads().long(&[
        REFS, &["count=", "exclude=", "include-root-refs", "perl", "python", "shell", "tcl"],
    ]),
    named("grep").flags("acEFGHhIilLnopPqrvwWz").valued("ABCefm").numbers().dashed("e").reads().long(&[
        &["after-context=", "all-match", "and", "basic-regexp", "before-context=", "break"],
        &["cached", "color[=]", "column", "context=", "count", "exclude-standard"],
        &["extended-regexp", "files-with-matches", "files-without-match", "fixed-strings"],
        &["full-name", "function-context", "heading", "ignore-case", "invert-match"],
        &["line-number", "max-count=", "max-depth=", "name-only", "no-color", "no-index"],
        &["no-recursive", "no-textconv", "not", "null", "only-matching", "or", "perl-regexp"],
        &["quiet", "recursive", "show-function", "text", "threads=", "untracked", "word-regexp"],
    ]),
    LOG,
    named("ls-files").flags("cdfikmostuvz").valued("xX").reads().long(&[
        &["abbrev[=]", "cached", "debug", "deduplicate", "deleted", "directory"],
        &["empty-directory", "eol", "error-unmatch", "exclude=", "exclude-from="],
        &["exclude-per-directory=", "exclude-standard", "format=", "full-name", "ignored"],
        &["killed", "modified", "no-empty-directory", "others", "resolve-undo", "sparse"],
        &["stage", "unmerged", "with-tree="],
    ]),
    named("ls-tree").flags("dlrtz").reads().long(&[
        &["abbrev[=]", "format=", "full-name", "full-tree", "long", "name-only", "name-status"],
        &["object-only"],
    ]),
    named("merge-base").flags("a").reads().long(&[
        &["all", "fork-point", "independent", "is-ancestor", "octopus"],
    ]),
    named("name-rev").reads().long(&[
        &["all", "always", "exclude=", "name-only", "no-undefined", "refs=", "tags", "undefined"],
    ]),
    LOG.called("rev-list").long(&[
        DIFF, REVISIONS, COMMITS,
        &["count", "disk-usage[=]", "header", "no-commit-header", "no-object-names", "objects"],
        &["objects-edge", "timestamp"],
    ]),
    // Not --show-superproject-working-tree: runs git in another directory.
    named("rev-parse").flags("q").reads().long(&[
        &["abbrev-ref[=]", "absolute-git-dir", "all", "branches[=]", "default=", "flags"],
        &["git-common-dir", "git-dir", "git-path=", "is-bare-repository", "is-inside-git-dir"],
        &["is-inside-work-tree", "is-shallow-repository", "no-flags", "no-revs", "not"],
        &["path-format=", "quiet", "remotes[=]", "revs-only", "shared-index-path", "short[=]"],
        &["show-cdup", "show-object-format[=]", "show-prefix"],
        &["show-toplevel", "symbolic", "symbolic-full-name", "tags[=]", "verify"],
    ]),
    LOG.called("shortlog").flags("abceinpqsuwzRWEFP").long(&[
        DIFF, REVISIONS, COMMITS, &["committer", "email", "group=", "numbered"],
    ]),
    LOG.called("show"),
    named("show-ref").flags("dqs").reads().long(&[
        &["abbrev[=]", "branches", "dereference", "exists", "hash[=]", "head", "heads", "quiet"],
        &["tags", "verify"],
    ]),
    named("status").flags("bsvz").attached("uM").reads().long(&[
        &["ahead-behind", "branch", "column[=]", "find-renames[=]", "ignore-submodules[=]"],
        &["ignored[=]", "long", "no-ahead-behind", "no-column", "no-renames", "null"],
        &["porcelain[=]", "renames", "short", "show-stash", "untracked-files[=]", "verbose"],
    ]),
    // A second operand is written.
    named("symbolic-ref").flags("q").operands(Operands::AtMost(1)).long(&[
        &["no-recurse", "quiet", "recurse", "short"],
    ]),
    // Not -v: runs gpg. Not -a, -d, -f, -m, -s, -u and the rest, which change something.
    named("tag").flags("il").attached("n").operands(Operands::Beside(TAG_LISTING)).long(&[
        // Not --column: runs git column.
        REFS, &["list", "no-column"],
    ]),
    named("version").long(&[&["build-options"]]),
];

/// Subcommands that have subcommands, of which only these read. Sorted.
#[rustfmt::skip] // A table, laid out by hand.
const NESTED: &[(&str, &[Program])] = &[
    ("config", &[
        named("get").reads().flags("z").long(&[CONFIG, &["all", "default=", "fixed-value", "regexp", "url=", "value="]]),
        named("list").flags("z").long(&[CONFIG]),
    ]),
    ("reflog", &[
        named("exists").reads(),
        named("list"),
        LOG.called("show"),
    ]),
    // Not show: contacts the remote.
    ("remote", &[named("get-url").reads().long(&[&["all", "push"]])]),
    ("stash", &[
        LOG.called("list"),
        DIFFS.called("show").long(&[DIFF, &["include-untracked", "no-include-untracked", "only-untracked"]]),
    ]),
    ("worktree", &[named("list").flags("vz").long(&[&["porcelain", "verbose"]])]),
];

const CONFIG: &[&str] = &[
    "bool",
    "global",
    "includes",
    "int",
    "local",
    "name-only",
    "no-includes",
    "null",
    "path",
    "show-origin",
    "show-scope",
    "system",
    "type=",
    "worktree",
];

/// `config` as older gits have it: an option says that it reads. Behind the key even `--get` is a
/// value that is written.
const CONFIG_READS: Program = named("config").flags("lz").reads().options_first().long(&[
    CONFIG,
    &["default=", "fixed-value", "get", "get-all", "get-regexp", "get-urlmatch", "list"],
]);
const READING: &[&str] = &["get", "get-all", "get-regexp", "get-urlmatch", "list", "l"];

/// What is left of `remote` and `reflog` without a word of their own.
const REMOTE: Program = named("remote").flags("v").long(&[&["verbose"]]);

/// Whether a call of git only reads.
pub(super) fn check(arguments: &[Word]) -> Result<(), NotSafe> {
    let arguments = match arguments.split_first() {
        Some((global, rest)) if global.as_literal() == Some("--no-pager") => rest,
        _ => arguments,
    };
    let Some((word, rest)) = arguments.split_first() else {
        // Prints what git can do.
        return Ok(());
    };
    let name = word.as_literal().unwrap_or_default();
    if name == "--version" && rest.is_empty() {
        return Ok(());
    }
    if let Some(subcommand) = named_in(SUBCOMMANDS, name) {
        return check_options(subcommand, rest);
    }
    let nested = NESTED.iter().find(|(outer, _)| *outer == name);
    let inner = rest.first().and_then(Word::as_literal);
    if let Some((_, programs)) = nested
        && let Some(program) = inner.and_then(|inner| named_in(programs, inner))
    {
        return check_options(program, &rest[1..]);
    }
    match name {
        "config" => check_config(rest),
        "remote" => check_options(&REMOTE, rest),
        "reflog" => check_reflog(rest),
        _ => Err(NotSafe(format!("git {} is not known to only read", shown(&word.text)))),
    }
}

/// Subcommands that look at names, references and settings and never into a file, so that no filter,
/// converter or external diff can be run for them. Sorted by name.
#[rustfmt::skip] // A table, laid out by hand.
const NEVER_INSIDE: &[&str] = &[
    "--version", "branch", "check-attr", "check-ignore", "config", "count-objects", "for-each-ref",
    "merge-base", "name-rev", "remote", "rev-parse", "show-ref", "symbolic-ref", "tag", "version",
    "worktree",
];

/// Whether a call of git may look into files, where a repository's settings can have programs run.
pub(super) fn looks_inside(arguments: &[Word]) -> bool {
    let mut words = arguments.iter().filter_map(Word::as_literal);
    let subcommand = words.find(|word| *word != "--no-pager");
    subcommand.is_some_and(|name| !NEVER_INSIDE.contains(&name))
}

/// Whether a call of git may show what is in the files that it names.
pub(super) fn shows_contents(arguments: &[Word]) -> bool {
    let mut words = arguments.iter().filter_map(Word::as_literal);
    let subcommand = words.find(|word| *word != "--no-pager");
    // It lists them.
    subcommand != Some("ls-files") && looks_inside(arguments)
}

fn check_options(subcommand: &Program, arguments: &[Word]) -> Result<(), NotSafe> {
    walk(subcommand, arguments, &mut |seen| check_value(&seen))
}

/// Whether the value of an option is one that only reads, where others are not.
fn check_value(seen: &Seen<'_>) -> Result<(), NotSafe> {
    let Seen::Option { name, value: Some(value) } = *seen else { return Ok(()) };
    let plain = match name {
        "format" | "pretty" => is_plain_format(value),
        "sort" => !runs_another(value),
        "diff-merges" if !MERGES.contains(&value) => {
            let value = shown(value);
            return Err(NotSafe(format!("to show merges as {value} may make git merge again")));
        }
        _ => true,
    };
    if plain {
        return Ok(());
    }
    Err(NotSafe(format!("the format {} of git may run another program", shown(value))))
}

/// How merges may be shown. Not remerge, r: merges again, and writes objects for that.
const MERGES: [&str; 11] = [
    "1",
    "c",
    "cc",
    "combined",
    "dense-combined",
    "first-parent",
    "m",
    "none",
    "off",
    "on",
    "separate",
];

/// The names of git's own formats. Other names are looked up in the configuration.
const FORMATS: [&str; 10] =
    ["", "email", "full", "fuller", "mboxrd", "medium", "oneline", "raw", "reference", "short"];

/// Whether a format is git's own or written out, and runs nothing.
fn is_plain_format(format: &str) -> bool {
    let written_out =
        format.contains('%') || format.starts_with("format:") || format.starts_with("tformat:");
    (written_out || FORMATS.contains(&format)) && !runs_another(format)
}

/// Whether a format or a key to sort by names something that another program makes: signatures are
/// checked by gpg, and a description is made by another git.
fn runs_another(format: &str) -> bool {
    let words = ["%G", "%+G", "%-G", "% G", "signature", "describe"];
    words.iter().any(|word| format.contains(word))
}

/// `config` reads when an option says so, or when it gets a key and nothing else.
fn check_config(arguments: &[Word]) -> Result<(), NotSafe> {
    let mut reads = false;
    let mut operands: Vec<&Word> = Vec::new();
    walk(&CONFIG_READS, arguments, &mut |seen| {
        match seen {
            Seen::Option { name, .. } => reads |= READING.contains(&name),
            Seen::Operand(word) => operands.push(word),
        }
        Ok(())
    })?;
    let is_key = |word: &Word| word.as_literal().is_some_and(|key| key.contains('.'));
    match operands.as_slice() {
        _ if reads => Ok(()),
        [key] if is_key(key) => Ok(()),
        _ => Err(NotSafe("git config may write unless it is told to read (--get)".to_owned())),
    }
}

/// `reflog` without a word of its own shows; its operand is then a reference, which is told from a
/// word of its own only if it is HEAD or one of its kin.
fn check_reflog(arguments: &[Word]) -> Result<(), NotSafe> {
    const REFLOG: Program = LOG.called("reflog");
    walk(&REFLOG, arguments, &mut |seen| match seen {
        Seen::Operand(word) if !word.text.starts_with("HEAD") => {
            Err(NotSafe(format!("git reflog {} is not known to only read", shown(&word.text))))
        }
        seen => check_value(&seen),
    })
}

#[cfg(test)]
pub(super) fn tables() -> impl Iterator<Item = &'static [Program]> {
    let own: [&'static [Program]; 1] = [SUBCOMMANDS];
    own.into_iter().chain(NESTED.iter().map(|(_, programs)| *programs))
}
