//! Whatever is done to a log afterwards is found.

use super::*;
use proptest::prelude::*;
use std::ops::Range;
use std::sync::LazyLock;

/// Four files of a log: two days, the head, and with a torn line in the first day.
struct Sample {
    files: Vec<(String, Vec<u8>)>,
}

static SAMPLE: LazyLock<Sample> = LazyLock::new(|| {
    let home = Home::new();
    let log = home.open();
    put_at(&log, DAY, &note("one"));
    put_at(&log, DAY, &asked(&["cargo", "test"]));
    home.change(DAY_FILE, |bytes| bytes.extend(b"{\"seq\":3,\"ti"));
    for record in [ended(), note("x"), asked(&["ls"]), ended()] {
        put_at(&log, DAY, &record);
    }
    for record in [note("y"), asked(&["cat", "file"]), ended(), note("end")] {
        put_at(&log, NEXT_DAY, &record);
    }
    home.is_intact();
    let names = [DAY_FILE, NEXT_DAY_FILE, HEAD];
    Sample { files: names.map(|name| (name.to_owned(), home.read(name))).into() }
});

impl Sample {
    fn restore(&self) -> Home {
        let home = Home::new();
        fs::create_dir(home.audit()).unwrap();
        for (name, bytes) in &self.files {
            fs::write(home.file(name), bytes).unwrap();
        }
        home
    }

    fn bytes(&self, name: &str) -> &[u8] {
        &self.files.iter().find(|(found, _)| found == name).unwrap().1
    }

    /// Where the lines of a file are, with their line ends.
    fn lines(&self, name: &str) -> Vec<Range<usize>> {
        let mut begin = 0;
        let ends = self.bytes(name).split_inclusive(|byte| *byte == b'\n').map(<[u8]>::len);
        ends.map(|length| {
            begin += length;
            begin - length..begin
        })
        .collect()
    }
}

fn any_file() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just(DAY_FILE), Just(NEXT_DAY_FILE)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// spec AUDIT.20: A changed byte is found, wherever it is.
    #[test]
    fn any_changed_byte_is_found(
        name in prop_oneof![Just(DAY_FILE), Just(NEXT_DAY_FILE), Just(HEAD)],
        place in any::<prop::sample::Index>(),
        flipped in 1_u8..,
    ) {
        let home = SAMPLE.restore();
        let place = place.index(SAMPLE.bytes(name).len());
        home.change(name, |bytes| bytes[place] ^= flipped);
        prop_assert!(!home.verify().is_intact(), "{name} byte {place}");
    }

    /// spec AUDIT.21: A line that was taken out is found, and so is one that was put in twice.
    #[test]
    fn any_lost_or_repeated_line_is_found(
        name in any_file(),
        line in any::<prop::sample::Index>(),
        to in any::<prop::sample::Index>(),
    ) {
        let lines = SAMPLE.lines(name);
        let line = line.get(&lines).clone();
        let home = SAMPLE.restore();
        home.change(name, |bytes| drop(bytes.drain(line.clone())));
        prop_assert!(!home.verify().is_intact(), "{name} without {line:?}");

        let home = SAMPLE.restore();
        let at = to.get(&lines).start;
        let copied = SAMPLE.bytes(name)[line.clone()].to_vec();
        home.change(name, |bytes| drop(bytes.splice(at..at, copied)));
        prop_assert!(!home.verify().is_intact(), "{name} with {line:?} at {at}");
    }

    /// spec AUDIT.22: Lines that changed places are found.
    #[test]
    fn any_two_lines_that_changed_places_are_found(
        name in any_file(),
        one in any::<prop::sample::Index>(),
        other in any::<prop::sample::Index>(),
    ) {
        let lines = SAMPLE.lines(name);
        let (one, other) = (one.index(lines.len()), other.index(lines.len()));
        prop_assume!(one != other);
        let home = SAMPLE.restore();
        home.change(name, |bytes| {
            let mut order: Vec<usize> = (0..lines.len()).collect();
            order.swap(one, other);
            *bytes = order.iter().flat_map(|at| bytes[lines[*at].clone()].to_vec()).collect();
        });
        prop_assert!(!home.verify().is_intact(), "{name} {one} {other}");
    }

    /// spec AUDIT.23: A file that was cut off is found, wherever it was cut, the last file too.
    #[test]
    fn any_cut_is_found(
        name in prop_oneof![Just(DAY_FILE), Just(NEXT_DAY_FILE), Just(HEAD)],
        length in any::<prop::sample::Index>(),
    ) {
        let home = SAMPLE.restore();
        let length = length.index(SAMPLE.bytes(name).len());
        home.change(name, |bytes| bytes.truncate(length));
        prop_assert!(!home.verify().is_intact(), "{name} cut to {length}");
    }

    #[test]
    fn whatever_bytes_are_put_in_are_found_and_harmless(
        name in any_file(),
        place in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 1..200),
    ) {
        let home = SAMPLE.restore();
        let at = place.index(SAMPLE.bytes(name).len());
        home.change(name, |file| drop(file.splice(at..at, bytes)));
        prop_assert!(!home.verify().is_intact(), "{name} at {at}");
        drop(home.entries());
        put(&home.open(), &note("still written"));
    }
}

/// spec AUDIT.24: A file that is gone is found: the first, one in the middle or the last.
#[test]
fn a_lost_file_is_named() {
    let home = Home::new();
    let log = home.open();
    let days = ["2026-11-01", "2026-11-02", "2026-11-03"];
    for day in days {
        put_at(&log, &format!("{day}T10:00:00Z"), &note(day));
    }
    let name = |day: &str| format!("{day}.jsonl");
    for (index, day) in days.into_iter().enumerate() {
        let bytes = home.read(&name(day));
        fs::remove_file(home.file(&name(day))).unwrap();
        let expected = match days.get(index + 1) {
            Some(next) => format!(
                "{}, line 1: {} belongs before this file and is gone",
                name(next),
                name(day)
            ),
            None => "HEAD.json: the end of the log was cut off: its head says that it reaches to \
                     number 3, and number 2 is the last that is there"
                .to_owned(),
        };
        assert_eq!(home.findings(), [expected]);
        fs::write(home.file(&name(day)), bytes).unwrap();
    }
    home.is_intact();
}

/// spec AUDIT.25: A finding names the file, the line and what is wrong with it, and the lines after
/// it are not blamed.
#[test]
fn one_change_is_one_finding_at_its_line() {
    let lines = SAMPLE.lines(NEXT_DAY_FILE);
    let inside = lines[1].start + 60;
    let cases: [(&str, Change<'_>, &str); 6] = [
        ("a byte of text", Box::new(move |b| b[inside] ^= 1), "line 2: this line was changed"),
        (
            "a byte of a hash",
            Box::new(move |b| {
                let place = b.len() - 1 - 20;
                b[place] = if b[place] == b'0' { b'1' } else { b'0' };
            }),
            "line 4: this line was changed",
        ),
        ("a line lost", Box::new(|b| cut_line(b, 1)), "line 2: number 9 is missing before"),
        (
            "two lines lost",
            Box::new(|b| {
                cut_line(b, 1);
                cut_line(b, 1);
            }),
            "line 2: numbers 9 to 10 are missing before",
        ),
        (
            "a line twice",
            Box::new(|b| {
                let line = b.split_inclusive(|byte| *byte == b'\n').next().unwrap().to_vec();
                b.splice(0..0, line);
            }),
            "line 2: this is the line before it once more",
        ),
        (
            "a line put in",
            Box::new(|b| {
                let at = b.iter().position(|byte| *byte == b'\n').unwrap() + 1;
                b.splice(at..at, *b"hello\n");
            }),
            "line 2: this is no line of the log",
        ),
    ];
    for (what, change, expected) in cases {
        let home = SAMPLE.restore();
        home.change(NEXT_DAY_FILE, change);
        let findings = home.findings();
        assert_eq!(findings.len(), 1, "{what}: {findings:#?}");
        assert!(findings[0].starts_with(&format!("{NEXT_DAY_FILE}, {expected}")), "{findings:?}");
    }
}

/// Something that is done to a file.
type Change<'a> = Box<dyn Fn(&mut Vec<u8>) + 'a>;

fn cut_line(bytes: &mut Vec<u8>, line: usize) {
    let kept: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let kept = kept.iter().enumerate().filter(|(index, _)| *index != line);
    *bytes = kept.flat_map(|(_, line)| line.to_vec()).collect();
}

/// spec AUDIT.26: A head that was removed, or put back to an earlier state, is found.
#[test]
fn an_old_or_lost_head_is_found() {
    let home = Home::with_notes(2);
    let old = home.read(HEAD);
    let log = home.open();
    put_at(&log, DAY, &note("three"));
    put_at(&log, DAY, &note("four"));
    fs::write(home.file(HEAD), old).unwrap();
    assert!(home.findings()[0].contains("names number 2, and 2 more lines follow"));
    fs::remove_file(home.file(HEAD)).unwrap();
    assert!(home.findings()[0].starts_with("HEAD.json: it is gone"));
}

#[test]
fn a_line_that_never_ends_takes_no_memory_and_is_found() {
    let home = Home::with_notes(1);
    home.change(DAY_FILE, |bytes| {
        bytes.extend(std::iter::repeat_n(b'x', 3 << 20));
        bytes.push(b'\n');
    });
    assert_eq!(home.findings().len(), 1);
    assert_eq!(home.entries().len(), 1);
}

#[test]
fn findings_without_end_are_counted() {
    let home = Home::with_notes(1);
    home.change(DAY_FILE, |bytes| bytes.extend(b"x\n".repeat(5_000)));
    let found = home.verify();
    assert_eq!(found.findings.len() as u64 + found.more_findings, 5_000);
    assert_eq!(found.findings.len(), 1_000);
}
