//! Programs that show files, directories and what is known about them.

use super::NotSafe;
use super::options::{Operands, Program, named};
use crate::command::{Shape, Word};

const ABOUT: &[&str] = &["help", "version"];

#[rustfmt::skip] // A table, laid out by hand.
const LS_LONG: &[&str] = &[
    "all", "almost-all", "author", "block-size=", "classify[=]", "color[=]", "context",
    "dereference", "dereference-command-line", "dereference-command-line-symlink-to-dir", "directory",
    "dired", "escape", "file-type", "format=", "full-time", "group-directories-first", "hide=",
    "hide-control-chars", "human-readable", "hyperlink[=]", "ignore=", "ignore-backups",
    "indicator-style=", "inode", "kibibytes", "literal", "no-group", "numeric-uid-gid", "quote-name",
    "quoting-style=", "recursive", "reverse", "show-control-chars", "si", "size", "sort=", "tabsize=",
    "time=", "time-style=", "width=", "zero",
];

const fn ls(name: &'static str) -> Program {
    named(name)
        .flags("abcdefghiklmnopqrstuvxyABCDFGHLNOPQRSUWXZ1@%,")
        .valued("ITw")
        .long(&[ABOUT, LS_LONG])
        .harmless()
}

/// Sorted by name.
#[rustfmt::skip] // A table, laid out by hand.
pub(super) const PROGRAMS: &[Program] = &[
    named("basename").operands(Operands::Free),
    named("cat").flags("AbeElnstTuv").harmless().long(&[
        ABOUT,
        &["number", "number-nonblank", "show-all", "show-ends", "show-nonprinting", "show-tabs"],
        &["squeeze-blank"],
    ]),
    named("cmp").flags("blsvhxz").valued("in").harmless().long(&[
        ABOUT,
        &["bytes=", "ignore-initial=", "print-bytes", "quiet", "silent", "verbose"],
    ]),
    // Not --sync: makes the kernel write what it has in memory.
    named("df").flags("abcghHiIklmnPTvY,").valued("Btx").reads().long(&[
        ABOUT,
        &["all", "block-size=", "exclude-type=", "human-readable", "inodes", "local", "no-sync"],
        &["output[=]", "portability", "print-type", "si", "total", "type="],
    ]),
    // Not -l, --paginate: runs pr.
    named("diff").flags("abBcdeEinNpqrstTuvwyZ").valued("CDFIUWxXS").reads().long(&[
        ABOUT,
        &["brief", "color[=]", "context[=]", "ed", "exclude=", "exclude-from=", "expand-tabs"],
        &["from-file=", "horizon-lines=", "ifdef=", "ignore-all-space", "ignore-blank-lines"],
        &["ignore-case", "ignore-file-name-case", "ignore-matching-lines=", "ignore-space-change"],
        &["ignore-tab-expansion", "ignore-trailing-space", "initial-tab", "label=", "left-column"],
        &["minimal", "new-file", "no-dereference", "no-ignore-file-name-case", "normal"],
        &["palette=", "rcs", "recursive", "report-identical-files", "show-c-function"],
        &["show-function-line=", "side-by-side", "speed-large-files", "starting-file="],
        &["strip-trailing-cr", "suppress-blank-empty", "suppress-common-lines", "tabsize=", "text"],
        &["to-file=", "unidirectional-new-file", "unified[=]", "width="],
    ]),
    ls("dir"),
    named("dirname").operands(Operands::Free),
    named("du").flags("0abcDghHiklLmnPsSxA").valued("BdtIX").harmless().long(&[
        ABOUT,
        &["all", "apparent-size", "block-size=", "bytes", "count-links", "dereference"],
        &["dereference-args", "exclude=", "exclude-from=", "files0-from=", "human-readable"],
        &["inodes", "max-depth=", "no-dereference", "null", "one-file-system", "separate-dirs"],
        &["si", "summarize", "threshold=", "time[=]", "time-style=", "total"],
    ]),
    // Not -C: writes a magic.mgc. Not -z, -Z: run decompressors. Not -p: sets times back. Not -S:
    // gives up its own sandbox. Not -m: a magic file is a program of a kind. Not -s: reads devices.
    named("file").flags("0bEhiIkLnNrv").valued("eFf").reads().long(&[
        &["apple", "brief", "dereference", "exclude=", "exclude-quiet=", "extension"],
        &["files-from=", "help", "keep-going", "mime", "mime-encoding", "mime-type"],
        &["no-buffer", "no-dereference", "no-pad", "print0", "raw", "separator=", "version"],
    ]),
    named("head").flags("qvz").valued("cn").numbers().harmless().long(&[
        ABOUT,
        &["bytes=", "lines=", "quiet", "silent", "verbose", "zero-terminated"],
    ]),
    ls("ls"),
    // Not -l: may ask for debug information over the network. Not --plugin: loads code.
    named("nm").flags("aABCDgnoprSuv").reads().option_files().long(&[
        ABOUT,
        &["debug-syms", "defined-only", "demangle", "dynamic", "extern-only", "numeric-sort"],
        &["print-size", "reverse-sort", "size-sort", "undefined-only"],
    ]),
    named("pwd").flags("LP").long(&[ABOUT, &["logical", "physical"]]),
    // Not -w, -P: may ask for debug information over the network.
    named("readelf").flags("adehlnrsSVW").reads().option_files().long(&[
        ABOUT,
        &["all", "dynamic", "file-header", "headers", "notes", "program-headers", "relocs"],
        &["section-headers", "sections", "segments", "symbols", "syms", "version-info", "wide"],
    ]),
    named("readlink").flags("efmnqsvz").harmless().long(&[
        ABOUT,
        &["canonicalize", "canonicalize-existing", "canonicalize-missing", "no-newline", "quiet"],
        &["silent", "verbose", "zero"],
    ]),
    named("realpath").flags("eELmPqsz").harmless().long(&[
        ABOUT,
        &["canonicalize-existing", "canonicalize-missing", "logical", "no-symlinks", "physical"],
        &["quiet", "relative-base=", "relative-to=", "strip", "zero"],
    ]),
    named("size").flags("ABdGotx").reads().option_files().long(&[
        ABOUT,
        &["common", "format=", "totals"],
    ]),
    named("stat").flags("fFLlnqrstx").valued("c").harmless().long(&[
        ABOUT,
        &["cached=", "dereference", "file-system", "format=", "printf=", "terse"],
    ]),
    // -f and -F wait for more until they are ended, and do nothing else.
    named("tail").flags("fFqrvz").valued("bcns").numbers().harmless().long(&[
        ABOUT,
        &["bytes=", "follow[=]", "lines=", "max-unchanged-stats=", "pid=", "quiet", "retry"],
        &["silent", "sleep-interval=", "verbose", "zero-terminated"],
    ]),
    // Not -o: writes. Not -R: writes 00Tree.html in each directory. Letters go on behind one that
    // takes a value, so that `-Po` holds an -o.
    named("tree").flags("adfgxlpsuhDFqNQrtUvcinCASJX").valued("LPI").values_apart().reads().long(&[
        ABOUT,
        &["charset=", "device", "dirsfirst", "du", "filelimit=", "filesfirst", "filesize"],
        &["fromfile", "gitignore", "ignore-case", "inodes", "matchdirs", "metafirst"],
        &["noreport", "nolinks", "prune", "si", "sort=", "timefmt="],
    ]),
    ls("vdir"),
    named("wc").flags("clLmw").harmless().long(&[
        ABOUT,
        &["bytes", "chars", "files0-from=", "lines", "max-line-length", "total=", "words"],
    ]),
];

/// `unzip -l`, which lists. Whatever else it is told, it may write files.
pub(super) fn check_unzip(arguments: &[Word]) -> Result<(), NotSafe> {
    let lists = |word: &Word| matches!(word.as_literal(), Some("-l" | "-lv" | "-lq"));
    let operand = |word: &Word| match word.shape {
        Shape::Pattern => !word.text.starts_with(['*', '?', '[']),
        _ => !word.text.starts_with('-'),
    };
    match arguments {
        [first, rest @ ..] if lists(first) && !rest.is_empty() && rest.iter().all(operand) => {
            Ok(())
        }
        _ => Err(NotSafe("unzip only lists as `unzip -l FILE`".to_owned())),
    }
}
