//! What is written, in which form, and how the log goes on after whatever happened to it.

use super::*;
use sandgate_runtime::audit::{AuditError, MAX_LINE_BYTES, verify_since};
use std::fs::OpenOptions;
use std::io::Write as _;

/// spec AUDIT.1: Each record is one line of JSON with its number, its time in UTC to the
/// millisecond, its session and a hash, in a file that is named after the day.
#[test]
fn a_record_is_one_line_in_the_file_of_its_day() {
    let home = Home::new();
    put_at(&home.open(), DAY, &asked(&["ls", "-la"]));
    let text = String::from_utf8(home.read(DAY_FILE)).unwrap();
    let line: serde_json::Value = serde_json::from_str(text.strip_suffix('\n').unwrap()).unwrap();
    assert_eq!((&line["seq"], &line["session"]), (&1.into(), &"session".into()));
    assert_eq!(line["time"], "2026-11-01T10:00:00.125Z");
    assert_eq!(line["record"]["type"], "call_asked");
    assert_eq!(line["record"]["argv"], serde_json::json!(["ls", "-la"]));
    assert_eq!(line["hash"].as_str().unwrap().len(), 64);
}

/// spec AUDIT.2: The hash is the SHA-256 of the hash before, 64 zeros for the first line, and of the
/// line's own text up to `,"hash":`.
#[test]
fn the_hash_covers_the_literal_text_and_the_hash_before() {
    use sha2::Digest as _;
    let home = Home::with_notes(3);
    let mut before = "0".repeat(64);
    for line in String::from_utf8(home.read(DAY_FILE)).unwrap().lines() {
        let (text, seal) = line.rsplit_once(",\"hash\":").unwrap();
        let digest = sha2::Sha256::digest(format!("{before}{text}"));
        let hash = digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(seal, format!("\"{hash}\"}}"));
        before = hash;
    }
}

/// spec AUDIT.3: What is recorded can be read back as it was.
#[test]
fn records_are_read_back_as_they_were() {
    let home = Home::new();
    let records = [asked(&["a\u{1b}[2J", "\u{202e}", "\"\\\n"]), ended(), note("")];
    let log = home.open();
    for record in &records {
        put(&log, record);
    }
    assert_eq!(home.records(), records);
    home.is_intact();
}

/// spec AUDIT.4: The directory can be opened by its owner only, and so can the files.
#[cfg(unix)]
#[test]
fn nobody_else_can_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::with_notes(1);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home.audit()), 0o700);
    assert_eq!((mode(&home.file(DAY_FILE)), mode(&home.file(HEAD))), (0o600, 0o600));
    fs::set_permissions(home.file(DAY_FILE), fs::Permissions::from_mode(0o644)).unwrap();
    put_at(&home.open(), DAY, &note("again"));
    assert_eq!(mode(&home.file(DAY_FILE)), 0o600, "what was open is closed");
}

/// spec AUDIT.5: The lock that writers take cannot be read, so that a confined command, which can
/// read its owner's files, cannot hold it.
#[cfg(unix)]
#[test]
fn the_lock_cannot_be_opened_to_be_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::with_notes(1);
    let lock = home.file("lock");
    assert_eq!(fs::metadata(&lock).unwrap().permissions().mode() & 0o777, 0o200);
    if rustix::process::geteuid().is_root() {
        return;
    }
    assert!(fs::File::open(&lock).is_err());
}

/// spec AUDIT.6: A symbolic link in the place of the directory or of a file is refused, and what it
/// leads to is left alone.
#[cfg(unix)]
#[test]
fn links_are_refused() {
    use std::os::unix::fs::symlink;
    for name in [DAY_FILE, HEAD, "lock"] {
        let home = Home::new();
        fs::create_dir(home.audit()).unwrap();
        let target = home.path().join("target");
        fs::write(&target, "untouched").unwrap();
        symlink(&target, home.file(name)).unwrap();
        let written = AuditLog::open(home.path(), AuditOptions::default())
            .and_then(|log| log.record_at(DAY.parse().unwrap(), "s", &note("x")));
        let error = written.unwrap_err();
        assert!(matches!(error, AuditError::InTheWay { .. }), "{name}: {error}");
        assert_eq!(fs::read_to_string(&target).unwrap(), "untouched");
    }
    let home = Home::new();
    let elsewhere = tempfile::tempdir().unwrap();
    symlink(elsewhere.path(), home.audit()).unwrap();
    assert!(AuditLog::open(home.path(), AuditOptions::default()).is_err());
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[cfg(unix)]
#[test]
fn a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let home = Home::new();
    fs::create_dir(home.audit()).unwrap();
    mknodat(CWD, home.file(DAY_FILE), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let error = home.open().record_at(DAY.parse().unwrap(), "s", &note("x")).unwrap_err();
    assert!(error.to_string().contains("is not a file"), "{error}");
}

/// spec AUDIT.7: A line is no longer than 64 KiB; what is too long is cut, and the line says where,
/// how long it was and its SHA-256.
#[test]
fn what_is_too_long_is_cut_and_measured() {
    let home = Home::new();
    let long = "x".repeat(3 << 20);
    put_at(&home.open(), DAY, &asked(&["echo", &long]));
    assert!(home.read(DAY_FILE).len() <= MAX_LINE_BYTES);
    let entry = home.entries().remove(0);
    let Record::CallAsked(call) = &entry.record else { panic!("{entry:?}") };
    assert_eq!(call.argv[0], "echo");
    assert!(long.starts_with(&call.argv[1]) && call.argv[1].len() > 10_000);
    let sha256 = {
        use sha2::Digest as _;
        sha2::Sha256::digest(&long).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    assert_eq!(entry.cut.len(), 1);
    let cut = &entry.cut[0];
    assert_eq!((cut.field.as_str(), cut.bytes, &cut.sha256), ("/argv/1", 3 << 20, &sha256));
    home.is_intact();
}

/// spec AUDIT.8: A new day's file begins with the name and the last hash of the file before.
#[test]
fn the_chain_goes_on_across_days() {
    let home = Home::with_notes(2);
    let log = home.open();
    assert_eq!(put_at(&log, NEXT_DAY, &note("three")), 3);
    assert_eq!(put_at(&log, NEXT_DAY, &note("four")), 4);
    let entries = home.entries();
    let follows = entries[2].follows.as_ref().unwrap();
    assert_eq!(follows.file, DAY_FILE);
    let old = String::from_utf8(home.read(DAY_FILE)).unwrap();
    assert!(old.ends_with(&format!(",\"hash\":\"{}\"}}\n", follows.hash)));
    assert_eq!((&entries[0].follows, &entries[3].follows), (&None, &None));
    home.is_intact();
}

#[test]
fn a_clock_that_goes_back_does_not_go_back_to_an_older_file() {
    let home = Home::new();
    let log = home.open();
    put_at(&log, NEXT_DAY, &note("one"));
    put_at(&log, DAY, &note("two"));
    assert!(!home.file(DAY_FILE).exists());
    home.is_intact();
}

#[test]
fn several_writers_in_one_process_take_turns() {
    let home = Home::new();
    let logs = [home.open(), home.open()];
    for number in 0..10 {
        put(&logs[number % 2], &note("x"));
    }
    std::thread::scope(|scope| {
        for log in &logs {
            scope.spawn(move || (0..50).for_each(|_| assert!(put(log, &note("y")) > 10)));
            scope.spawn(move || (0..50).for_each(|_| assert!(put(log, &note("z")) > 10)));
        }
    });
    assert_eq!(home.records().len(), 210);
    home.is_intact();
}

/// The head as it was before the last line: what a writer leaves that was killed between the two.
fn unseal_last_line(home: &Home, log: &AuditLog, time: &str, record: &Record) {
    let head = home.read(HEAD);
    put_at(log, time, record);
    fs::write(home.file(HEAD), head).unwrap();
}

/// spec AUDIT.9: A line whose writer was killed before it could write the head is taken over by the
/// next writer, and until then is no finding.
#[test]
fn a_line_that_the_head_does_not_know_is_taken_over() {
    for opened_anew in [false, true] {
        let home = Home::with_notes(2);
        let bystander = home.open();
        put_at(&bystander, DAY, &note("three"));
        unseal_last_line(&home, &home.open(), DAY, &note("four"));
        home.is_intact();
        assert_eq!(
            home.notices(),
            ["HEAD.json: one line is not yet sealed; the next writer does that"]
        );
        let log = if opened_anew { home.open() } else { bystander };
        assert_eq!(put_at(&log, DAY, &note("five")), 5);
        home.is_intact();
        assert_eq!((home.notices().len(), home.records().len()), (0, 5));
    }
}

#[test]
fn the_first_line_of_a_day_is_taken_over_too() {
    let home = Home::with_notes(1);
    let log = home.open();
    // The head already names the new day when its first line is written.
    put_at(&log, NEXT_DAY, &note("two"));
    let line = home.read(NEXT_DAY_FILE);
    let hash = serde_json::from_slice::<serde_json::Value>(&home.read(DAY_FILE)).unwrap()["hash"]
        .as_str()
        .unwrap()
        .to_owned();
    let head = format!(
        "{{\"file\":\"{NEXT_DAY_FILE}\",\"length\":0,\"seq\":1,\"hash\":\"{hash}\",\"after\":\"{DAY_FILE}\"}}"
    );
    let head = format!("{head:255}\n");
    for torn in [false, true] {
        fs::write(home.file(HEAD), &head).unwrap();
        let kept = if torn { &line[..line.len() / 2] } else { &line[..] };
        fs::write(home.file(NEXT_DAY_FILE), kept).unwrap();
        home.is_intact();
        assert_eq!(home.notices().len(), 1);
        assert_eq!(put_at(&home.open(), NEXT_DAY, &note("three")), 3);
        home.is_intact();
    }
    fs::write(home.file(HEAD), &head).unwrap();
    fs::write(home.file(NEXT_DAY_FILE), "").unwrap();
    home.is_intact();
    assert_eq!(put_at(&home.open(), NEXT_DAY, &note("two")), 2);
    home.is_intact();
}

/// spec AUDIT.10: A line that was never finished is closed by the next writer with a record that
/// says how many bytes it has, and neither before nor after is it a finding.
#[test]
fn a_torn_line_is_closed_and_told_of() {
    let home = Home::with_notes(2);
    let whole = home.read(DAY_FILE);
    let torn = &whole[..50];
    let mut file = OpenOptions::new().append(true).open(home.file(DAY_FILE)).unwrap();
    file.write_all(torn).unwrap();
    home.is_intact();
    assert_eq!(home.notices().len(), 1);
    assert_eq!(put_at(&home.open(), DAY, &note("after")), 4);
    home.is_intact();
    let expected = format!(
        "{DAY_FILE}, line 3: 50 bytes of a line that was never finished; the next line says so"
    );
    assert_eq!(home.notices(), [expected]);
    assert!(matches!(home.records()[2], Record::Torn { bytes: 50, .. }));
    // Nobody can touch what was torn either.
    home.change(DAY_FILE, |bytes| bytes[whole.len() + 10] ^= 1);
    assert_eq!(home.findings().len(), 2);
}

/// Something that is done to a log.
type Damage = fn(&Home);

/// spec AUDIT.11: A writer that meets damage marks it in the log and goes on.
#[test]
fn damage_is_marked_and_the_log_goes_on() {
    let damages: [(&str, Damage); 6] = [
        ("cut", |home| home.change(DAY_FILE, |bytes| bytes.truncate(bytes.len() - 200))),
        ("emptied", |home| home.change(DAY_FILE, Vec::clear)),
        ("removed", |home| fs::remove_file(home.file(DAY_FILE)).unwrap()),
        ("changed", |home| {
            home.change(DAY_FILE, |bytes| {
                let place = bytes.len() - 10;
                bytes[place] ^= 1;
            });
        }),
        ("no head", |home| fs::remove_file(home.file(HEAD)).unwrap()),
        ("foreign", |home| home.change(DAY_FILE, |bytes| bytes.extend(b"{}\n"))),
    ];
    for (name, damage) in damages {
        let home = Home::with_notes(4);
        let bystander = home.open();
        put_at(&bystander, DAY, &note("five"));
        damage(&home);
        // A writer that is at work looks at lengths only; one that begins reads the last hash.
        let writer = if name == "changed" { home.open() } else { bystander };
        put_at(&writer, DAY, &note("after"));
        put_at(&home.open(), NEXT_DAY, &note("and after that"));
        let records = home.records();
        let marks = records.iter().filter(|record| matches!(record, Record::Damaged { .. }));
        assert_eq!(marks.count(), 1, "{name}: {records:?}");
        let findings = home.findings();
        let told = |line: &String| line.contains("damage was found when this line was written");
        assert!(findings.iter().any(told), "{name}: {findings:?}");
        assert!(records.ends_with(&[note("and after that")]));
    }
}

/// spec AUDIT.34: A log that was moved away or removed is begun anew, but settings that were removed are not made
/// again: what cannot be recorded does not run then.
#[test]
fn a_log_that_was_moved_away_is_begun_anew() {
    let home = Home::with_notes(1);
    let log = home.open();
    put_at(&log, DAY, &note("two"));
    fs::rename(home.audit(), home.path().join("old")).unwrap();
    assert_eq!(put_at(&log, DAY, &note("one again")), 1);
    home.is_intact();
    assert!(verify(&home.path().join("old")).unwrap().is_intact());
}

/// spec AUDIT.34: A log that was moved away or removed is begun anew, but settings that were removed are not made
/// again: what cannot be recorded does not run then.
#[test]
fn settings_that_were_removed_are_not_made_again() {
    let home = Home::new();
    let settings = home.path().join("settings");
    let log = AuditLog::open(&settings, AuditOptions::default()).unwrap();
    put_at(&log, DAY, &note("one"));
    fs::remove_dir_all(&settings).unwrap();
    for _ in 0..2 {
        let error = log.record("s", &note("nowhere")).unwrap_err().to_string();
        assert!(error.contains(settings.to_str().unwrap()), "{error}");
        assert!(!settings.exists());
    }
    fs::create_dir(&settings).unwrap();
    assert_eq!(put_at(&log, DAY, &note("one again")), 1);
    let mut written = entries(&audit_directory(&settings), None).unwrap().map(Result::unwrap);
    assert!(written.any(|entry| matches!(entry.record, Record::Unrecorded { count: 2, .. })));
}

#[test]
fn a_log_that_does_not_exist_is_empty_and_intact() {
    let home = Home::new();
    home.is_intact();
    assert_eq!((home.verify().lines, home.entries().len()), (0, 0));
    assert!(!home.audit().exists(), "looking makes nothing");
    drop(home.open());
    home.is_intact();
}

/// spec AUDIT.12: Files of days that are not asked about may be removed without a finding.
#[test]
fn old_files_can_be_removed() {
    let home = Home::with_notes(3);
    put_at(&home.open(), NEXT_DAY, &note("four"));
    fs::remove_file(home.file(DAY_FILE)).unwrap();
    assert_eq!(
        home.findings(),
        [format!("{NEXT_DAY_FILE}, line 1: {DAY_FILE} belongs before this file and is gone")]
    );
    let since = verify_since(&home.audit(), NEXT_DAY.parse().unwrap()).unwrap();
    assert!(since.is_intact(), "{since:?}");
    let long_after = verify_since(&home.audit(), "2027-01-01T00:00:00Z".parse().unwrap()).unwrap();
    assert!(long_after.is_intact() && long_after.lines == 1, "{long_after:?}");
}

#[test]
fn lines_of_a_later_version_are_read_as_unknown() {
    let line = r#"{"seq":1,"time":"2026-11-01T10:00:00.125Z","session":"s","new":1,"record":{"type":"dreamt","of":[1]}}"#;
    let entry: AuditEntry = serde_json::from_str(line).unwrap();
    assert_eq!(entry.record, Record::Unknown);
}
