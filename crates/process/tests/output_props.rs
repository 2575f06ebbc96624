//! What a command prints is bounded, counted to the byte, kept whole on disk, and made readable.

#[cfg(target_os = "linux")]
mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use sandgate_process::{
    HeadTailBuffer, ModelFormat, OutputCapture, RawStream, Spill, SpillPolicy, SpillReport, decode,
    harmless,
};
use sandgate_protocol::OutputStream::{Stderr, Stdout};
use sandgate_protocol::{ExecToolCallOutput, OutputStream, Spilled, StreamOutput};
use std::path::Path;
use std::time::Duration;

/// Fewer than usual where one case is a whole output.
const CASES: u32 = 96;

fn newlines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// Any bytes, with newlines among them as often as text has them.
fn bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![4 => any::<u8>(), 1 => Just(b'\n')], 0..max)
}

fn stream() -> impl Strategy<Value = OutputStream> {
    prop_oneof![Just(Stdout), Just(Stderr)]
}

/// What a buffer must hold and say after everything in `all` went through it.
fn check_buffer(buffer: &HeadTailBuffer, capacity: usize, all: &[u8]) {
    let head_end = all.len().min(capacity / 2);
    let tail_start = head_end.max(all.len().saturating_sub(capacity - capacity / 2));
    assert_eq!(buffer.head(), &all[..head_end]);
    let (older, newer) = buffer.tail();
    assert_eq!([older, newer].concat(), &all[tail_start..]);
    assert_eq!(buffer.contents(), [&all[..head_end], &all[tail_start..]].concat());
    assert_eq!(buffer.total_bytes(), all.len() as u64);
    assert_eq!(buffer.omitted_bytes(), (tail_start - head_end) as u64);
    assert_eq!(buffer.omitted_newlines(), newlines(&all[head_end..tail_start]));
    for extra in [0, 1, 2, capacity, 2 * capacity] {
        assert_eq!(buffer.would_omit(extra), all.len() + extra > capacity);
    }
}

fn check_raw(raw: &RawStream, capacity: usize, all: &[u8]) {
    let head_end = all.len().min(capacity / 2);
    let tail_start = head_end.max(all.len().saturating_sub(capacity - capacity / 2));
    assert_eq!(raw.head(), &all[..head_end]);
    assert_eq!(raw.tail(), &all[tail_start..]);
    assert_eq!(raw.total_bytes(), all.len() as u64);
    assert_eq!(raw.omitted_bytes(), (tail_start - head_end) as u64);
    assert_eq!(raw.omitted_newlines(), newlines(&all[head_end..tail_start]));
}

proptest! {
    /// spec OUTPUT.1: Of every stream the first and the last bytes are kept, half of the limit each,
    /// and the number of bytes and of lines between them is exact.
    #[test]
    fn a_buffer_keeps_both_ends_and_counts_the_rest(
        capacity in prop_oneof![0..4_usize, 0..300_usize],
        pushes in vec(bytes(200), 0..20),
    ) {
        let mut buffer = HeadTailBuffer::new(capacity);
        let mut all = Vec::new();
        for push in &pushes {
            buffer.push(push);
            all.extend_from_slice(push);
            check_buffer(&buffer, capacity, &all);
        }
    }

    /// spec OUTPUT.2: Standard output, standard error and both in the order of arrival are each kept
    /// by that rule, whichever stream writes first, last or never, and the raw bytes stay available.
    #[test]
    fn the_aggregate_has_everything_in_the_order_of_arrival(
        limit in prop_oneof![0..4_usize, 0..300_usize],
        pushes in vec((stream(), bytes(150)), 0..20),
    ) {
        let mut capture = OutputCapture::new(limit);
        let (mut stdout, mut stderr, mut both) = (Vec::new(), Vec::new(), Vec::new());
        for (stream, push) in &pushes {
            capture.push(*stream, push);
            match stream {
                Stdout => stdout.extend_from_slice(push),
                Stderr => stderr.extend_from_slice(push),
            }
            both.extend_from_slice(push);
            check_buffer(capture.stdout(), limit, &stdout);
            check_buffer(capture.stderr(), limit, &stderr);
            check_buffer(capture.aggregated(), limit, &both);
        }
        let raw = capture.finish();
        check_raw(&raw.stdout, limit, &stdout);
        check_raw(&raw.stderr, limit, &stderr);
        check_raw(&raw.aggregated, limit, &both);
    }
}

/// spec OUTPUT.3: The limit is 1 MiB for each stream and for the aggregate, and an output of exactly
/// that size is kept whole.
#[test]
fn an_output_of_one_mebibyte_is_kept_whole_and_one_byte_more_is_not() {
    let mut capture = OutputCapture::default();
    capture.push(Stdout, &vec![b'x'; 1024 * 1024]);
    let whole = capture.clone().finish().aggregated.to_stream_output(None);
    assert_eq!((whole.text.len(), whole.omitted_bytes), (1024 * 1024, 0));
    assert_eq!(whole.truncated_after_lines, None);
    capture.push(Stderr, b"y");
    let raw = capture.finish();
    assert_eq!(raw.stdout.omitted_bytes(), 0);
    assert_eq!(raw.stderr.omitted_bytes(), 0);
    assert_eq!(raw.aggregated.omitted_bytes(), 1);
}

fn kept(limit: usize, all: &[u8]) -> RawStream {
    let mut capture = OutputCapture::new(limit);
    capture.push(Stdout, all);
    capture.finish().aggregated
}

fn captured(limit: usize, all: &[u8]) -> StreamOutput {
    kept(limit, all).to_stream_output(None)
}

/// A file that holds the first bytes of an output.
fn spill(id: &str, bytes: u64, complete: bool) -> Spilled {
    Spilled { id: Some(id.to_owned()), bytes, complete, error: None }
}

/// The numbers of a gap line, read without the code under test.
fn numbers(line: &str) -> Option<(u64, u64)> {
    let (lines, rest) = line.strip_prefix("[… ")?.split_once(" lines, ")?;
    let (bytes, _) = rest.strip_suffix(" …]")?.split_once(" bytes omitted")?;
    Some((lines.parse().ok()?, bytes.parse().ok()?))
}

/// Whether `shown` is `all` with one gap line, at the given line, whose numbers are exact. Returns
/// what stands before and after the gap, without a newline that was added to set the gap line off.
fn around_gap<'s>(shown: &'s str, all: &str, gap_line: usize) -> Option<(&'s str, &'s str)> {
    let before: usize = shown.split_inclusive('\n').take(gap_line).map(str::len).sum();
    let (head, rest) = shown.split_at(before);
    let (line, tail) = rest.split_once('\n')?;
    let (lines, bytes) = numbers(line)?;
    // Ours to add is one newline at most, where the text was cut inside a line.
    let added = ((head.len() + tail.len()) as u64 + bytes).checked_sub(all.len() as u64)?;
    let head = match added {
        0 => head,
        1 => head.strip_suffix('\n')?,
        _ => return None,
    };
    let fits = all.len() >= head.len() + tail.len()
        && all.starts_with(head)
        && all.ends_with(tail)
        && newlines(&all.as_bytes()[head.len()..all.len() - tail.len()]) == lines;
    fits.then_some((head, tail))
}

/// Text of words and long lines in several scripts, and of lines that look like a gap.
fn plain_text(max_pieces: usize) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => "[ -~]{0,40}\n",
        2 => "[a-zé日🦀]{1,30}",
        1 => "[ab日]{200,700}",
        1 => Just("\n\n".to_owned()),
        1 => (0..50_u64, 0..5_000_u64)
            .prop_map(|(lines, bytes)| format!("\n[… {lines} lines, {bytes} bytes omitted …]\n")),
    ];
    vec(piece, 0..max_pieces).prop_map(|pieces| pieces.concat())
}

proptest! {
    /// spec OUTPUT.5: Where the middle of an output is missing, one line stands in its place that says
    /// exactly how many lines and bytes are, and the result says after how many lines it stands.
    #[test]
    fn the_gap_line_is_where_the_result_says_and_its_numbers_are_exact(
        limit in 0..900_usize,
        text in plain_text(40),
    ) {
        let output = captured(limit, text.as_bytes());
        prop_assert_eq!(output.total_bytes, text.len() as u64);
        match output.truncated_after_lines {
            None => prop_assert_eq!(output.text, text),
            Some(lines) => {
                let (head, tail) = around_gap(&output.text, &text, lines as usize).unwrap();
                let shown = (head.len() + tail.len()) as u64;
                prop_assert_eq!(output.omitted_bytes, output.total_bytes - shown);
                prop_assert!(output.omitted_bytes > 0);
            }
        }
    }

    /// spec OUTPUT.6: An output in UTF-8 is never cut inside a character.
    #[test]
    fn no_cut_breaks_a_character(limit in 0..200_usize, text in "[🦀日é\n]{0,300}") {
        let output = captured(limit, text.as_bytes());
        prop_assert!(!output.text.contains(char::REPLACEMENT_CHARACTER));
    }
}

/// spec OUTPUT.7: A cut falls between two lines when a line ends within 4 KiB of it.
#[test]
fn a_cut_falls_between_lines() {
    let all: String = (0..60_000).map(|n| format!("this is line number {n}\n")).collect();
    let output = captured(HeadTailBuffer::STREAM_MAX_BYTES, all.as_bytes());
    let lines: Vec<&str> = output.text.lines().collect();
    let gap = output.truncated_after_lines.unwrap() as usize;
    let (missing, bytes) = numbers(lines[gap]).unwrap();
    assert_eq!(lines[gap - 1], format!("this is line number {}", gap - 1));
    assert_eq!(lines[gap + 1], format!("this is line number {}", gap as u64 + missing));
    assert_eq!(lines.len() as u64 - 1 + missing, 60_000);
    assert_eq!(output.omitted_bytes, bytes);
}

/// spec OUTPUT.13: Both sides of a gap are read in one encoding, whichever it is.
#[test]
fn a_gap_in_text_of_another_encoding_leaves_both_sides_readable() {
    let sentence = "ファイルが見つかりません。 もう一度実行してください。";
    let (shift_jis, _, _) = encoding_rs::SHIFT_JIS.encode(sentence);
    let utf16: Vec<u8> = sentence.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let utf16_mark = [b"\xff\xfe".to_vec(), utf16.repeat(40)].concat();
    for all in [shift_jis.repeat(40), utf16_mark] {
        for limit in 400..404 {
            let output = captured(limit, &all);
            let (head, rest) = output.text.split_once("\n[… 0 lines, ").unwrap();
            let (_, tail) = rest.split_once(" …]\n").unwrap();
            let repeated = sentence.repeat(40);
            assert!(repeated.starts_with(head) && !head.is_empty(), "{head}");
            assert!(repeated.ends_with(tail) && !tail.is_empty(), "{limit}: {tail}");
        }
    }
}

proptest! {
    /// spec OUTPUT.8: Whatever bytes a program prints, they become text.
    #[test]
    fn any_bytes_become_text(all in bytes(300), limit in 0..300_usize) {
        let decoded = decode(&all);
        if let Ok(text) = std::str::from_utf8(&all)
            && decoded.encoding == "UTF-8"
        {
            prop_assert_eq!(&decoded.text, text.strip_prefix('\u{feff}').unwrap_or(text));
        }
        let output = captured(limit, &all);
        prop_assert_eq!(output.truncated_after_lines.is_some(), all.len() > limit);
    }

    /// spec OUTPUT.17: Text made harmless has no control character but newline and tab, as many lines
    /// as before, and making it harmless again changes nothing.
    #[test]
    fn harmless_text_has_no_controls_and_stays_as_it_is(
        text in "([ -~]|\n|\t|\r|\u{8}|\u{1b}|\u{1b}\\[|\u{1b}\\]|[\u{80}-\u{9f}]|\u{7}|[^a]|\u{202e}|\u{fe0f}|\u{200d}|🦀){0,80}",
    ) {
        let shown = harmless(&text).into_owned();
        prop_assert!(shown.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'), "{:?}", shown);
        prop_assert_eq!(newlines(shown.as_bytes()), newlines(text.as_bytes()));
        prop_assert_eq!(harmless(&shown), shown.as_str());
    }

    /// spec OUTPUT.18: Plain text is harmless already and is shown unchanged.
    #[test]
    fn plain_text_is_shown_unchanged(text in "[ -~\n\t]{0,200}|[ -~\n\téß日本語🦀–]{0,100}") {
        prop_assert_eq!(harmless(&text), text.as_str());
    }

    /// spec OUTPUT.19: Lines are made harmless one by one: nothing in one line changes what is shown
    /// of another.
    #[test]
    fn no_line_reaches_into_another(lines in vec("[^\n]{0,30}|\u{1b}\\][ -~]{0,9}|\u{1b}\\[[0-9]{0,3}", 1..6)) {
        let alone: Vec<String> = lines.iter().map(|line| harmless(line).into_owned()).collect();
        let together = lines.join("\n");
        prop_assert_eq!(harmless(&together), alone.join("\n"));
    }
}

/// A command that ended well; nothing of its text is in it, because a model's form needs none of it.
fn success() -> ExecToolCallOutput {
    ExecToolCallOutput {
        duration: Duration::from_millis(1_234),
        ..ExecToolCallOutput::not_started(0, "")
    }
}

fn printed(text: &str) -> RawStream {
    RawStream::from(text.as_bytes().to_vec())
}

/// spec OUTPUT.20: A model gets the bare text of a command that ended with exit code 0, of which
/// nothing was cut and about which nothing else is to be said.
#[test]
fn a_model_gets_bare_text_of_a_plain_success() {
    let text = "src/main.rs:42:    // to be refactored\n";
    assert_eq!(ModelFormat::default().format(&success(), &printed(text)), text);
    assert_eq!(ModelFormat::default().format(&success(), &printed("")), "");
}

/// spec OUTPUT.21: In every other case the text has a header: exit code, wall time, and whether the
/// command timed out, was cancelled, was ended by a signal, or left processes behind.
#[test]
fn a_model_is_told_how_a_command_ended() {
    let format = |change: fn(&mut ExecToolCallOutput)| {
        let mut output = success();
        change(&mut output);
        ModelFormat::default().format(&output, &printed("text\n"))
    };
    let body = "Wall time: 1.2 seconds\nOutput:\ntext\n";
    assert_eq!(format(|o| o.exit_code = 1), format!("Exit code: 1\n{body}"));
    let timed_out = format(|o| {
        o.exit_code = 124;
        o.timed_out = true;
        o.signal = Some(9);
    });
    let header = "Exit code: 124\nWall time: 1.2 seconds\nTimed out after 1.2 seconds\nOutput:\n";
    assert_eq!(timed_out, format!("{header}text\n"));
    let killed = format(|o| {
        o.exit_code = 137;
        o.signal = Some(9);
    });
    let name = if cfg!(unix) { " (SIGKILL)" } else { "" };
    assert!(killed.contains(&format!("\nEnded by signal 9{name}\nOutput:\n")), "{killed}");
    let unnamed = format(|o| o.signal = Some(63));
    assert!(unnamed.contains("\nEnded by signal 63\nOutput:\n"), "{unnamed}");
    assert!(format(|o| o.cancelled = true).contains("\nCancelled\nOutput:\n"));
    let open = format(|o| o.pipes_still_open = true);
    assert!(open.contains("\nProcesses were still holding its output open\nOutput:\n"), "{open}");
    let left = format(|o| o.left_running = 2);
    assert!(left.contains("\nProcesses that could not be ended: 2\nOutput:\n"), "{left}");
}

/// spec OUTPUT.22: A model gets at most 10,000 tokens of 4 bytes unless somebody says otherwise,
/// header and gap line included, and of a longer text the beginning and the end.
#[test]
fn a_model_gets_the_beginning_and_the_end_of_a_long_text() {
    let all: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
    let formatted = ModelFormat::default().format(&success(), &printed(&all));
    assert!(formatted.len() <= 40_000);
    assert!(formatted.len() > 39_900, "the budget is used: {}", formatted.len());
    let body = formatted.strip_prefix("Exit code: 0\nWall time: 1.2 seconds\nOutput:\n").unwrap();
    assert!(body.starts_with("line 0\nline 1\n") && body.ends_with("\nline 19999\n"));
    let gap = body.lines().position(|line| numbers(line).is_some()).unwrap();
    let (head, tail) = around_gap(body, &all, gap).unwrap();
    assert!(head.ends_with('\n') && tail.starts_with("line "));
    assert!(head.len().abs_diff(tail.len()) < 100, "{} and {}", head.len(), tail.len());
}

/// spec OUTPUT.23: When the capture had left a gap already, a model sees one gap line with the sum,
/// and it names the file with the full output.
#[test]
fn two_gaps_become_one() {
    let all: String = (0..200_000).map(|n| format!("line {n}\n")).collect();
    let raw = kept(HeadTailBuffer::STREAM_MAX_BYTES, all.as_bytes());
    let mut output = success();
    output.aggregated_output.spill = Some(spill("output-7YbZ", all.len() as u64, true));
    let formatted = ModelFormat::default().format(&output, &raw);
    let (_, body) = formatted.split_once("Output:\n").unwrap();
    let gaps: Vec<usize> =
        (0..).zip(body.lines()).filter(|(_, l)| l.starts_with("[…")).map(|(n, _)| n).collect();
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    assert!(body.contains(" bytes omitted; full output: output-7YbZ …]\n"));
    around_gap(body, &all, gaps[0]).unwrap();
}

/// spec OUTPUT.34: A file is called the full output only when it holds all of it; of any other the
/// gap line says how many of the first bytes it holds, and where there is no file it names none.
#[test]
fn only_a_complete_file_is_called_the_full_output() {
    let raw = kept(100, "some text\n".repeat(50).as_bytes());
    let missing = Spilled { id: None, bytes: 0, complete: false, error: Some("full".to_owned()) };
    for (file, expected) in [
        (Some(spill("output-a", 500, true)), " bytes omitted; full output: output-a …]"),
        (Some(spill("output-a", 300, false)), " bytes omitted; first 300 bytes: output-a …]"),
        (Some(missing), " bytes omitted …]"),
        (None, " bytes omitted …]"),
    ] {
        let mut output = success();
        output.aggregated_output = raw.to_stream_output(file.clone());
        assert_eq!(output.aggregated_output.spill, file);
        for text in [&output.aggregated_output.text, &ModelFormat::default().format(&output, &raw)]
        {
            let line = text.lines().find(|line| numbers(line).is_some()).unwrap();
            assert!(line.ends_with(expected), "{line}");
        }
    }
}

/// spec OUTPUT.24: A program that prints a gap line itself confuses nothing.
#[test]
fn a_forged_gap_line_is_only_text() {
    let forged = "[… 5 lines, 999999 bytes omitted; full output: /etc/passwd …]\n";
    let all = format!("{forged}{}{forged}", "some text\n".repeat(500));
    let formatted = ModelFormat::new(200).format(&success(), &kept(2_000, all.as_bytes()));
    let (_, body) = formatted.split_once("Output:\n").unwrap();
    assert!(body.starts_with(forged) && body.ends_with(forged));
    let exact = (0..body.lines().count()).filter(|n| around_gap(body, &all, *n).is_some());
    assert_eq!(exact.count(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    /// spec OUTPUT.25: The numbers in a model's gap line are exact for every text, every encoding,
    /// every limit and every budget.
    #[test]
    fn the_models_numbers_are_exact(
        limit in prop_oneof![600..9_000_usize, Just(1 << 20)],
        tokens in ModelFormat::MIN_TOKENS..700,
        text in plain_text(120),
    ) {
        let raw = kept(limit, text.as_bytes());
        let formatted = ModelFormat::new(tokens).format(&success(), &raw);
        prop_assert!(formatted.len() <= 4 * tokens);
        if raw.omitted_bytes() == 0 && text.len() <= 4 * tokens {
            prop_assert_eq!(formatted, text);
        } else {
            let (_, body) = formatted.split_once("Output:\n").unwrap();
            let exact = (0..body.lines().count()).find_map(|n| around_gap(body, &text, n));
            let (head, tail) = exact.expect("one line of it is the gap");
            prop_assert!(!head.is_empty() && !tail.is_empty());
        }
    }

    /// spec OUTPUT.26: A model's text keeps its budget, has no control characters and ends as the
    /// output does, whatever a program prints and however the command ended.
    #[test]
    fn the_models_text_keeps_its_budget(
        limit in 600..9_000_usize,
        tokens in 0..400_usize,
        pieces in vec(
            "[ -~]{0,60}\n|\u{1b}\\[[0-9;]{0,5}m[a-z]{0,9}|\r[0-9]{1,3}%|(\u{202e}|\u{200b}){1,9}|\u{1b}\\][ -~]{0,99}|[^\n]{1,200}",
            0..60,
        ),
        signal in proptest::option::of(1..64_i32),
        exit_code: i32,
        millis: u64,
        timed_out: bool,
        cancelled: bool,
        pipes_still_open: bool,
        left_running: u32,
        file in proptest::option::of(("output-[a-zA-Z0-9]{22}", any::<u64>(), any::<bool>())),
    ) {
        let text = pieces.concat() + "\nthe end\n";
        let raw = kept(limit, text.as_bytes());
        let mut output = ExecToolCallOutput {
            exit_code, signal, timed_out, cancelled, pipes_still_open, left_running,
            duration: Duration::from_millis(millis),
            ..success()
        };
        output.aggregated_output.spill =
            file.map(|(id, bytes, complete)| spill(&id, bytes, complete));
        let formatted = ModelFormat::new(tokens).format(&output, &raw);
        prop_assert!(formatted.len() <= 4 * tokens.max(ModelFormat::MIN_TOKENS));
        prop_assert!(formatted.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
        prop_assert!(formatted.ends_with("the end\n"), "{}", formatted);
    }
}

fn encoded(encoding: &'static encoding_rs::Encoding, text: &str) -> Vec<u8> {
    match encoding == encoding_rs::UTF_16LE {
        true => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        false => encoding.encode(text).0.into_owned(),
    }
}

/// spec OUTPUT.25: The numbers in a model's gap line are exact for every text, every encoding, every
/// limit and every budget.
#[test]
fn the_models_numbers_are_exact_in_every_encoding() {
    let western = "Größe überschritten: „Käse“\n".repeat(400);
    let cyrillic = "Не удалось открыть файл – ".repeat(400);
    let japanese = "ファイルが見つかりません。\nもう一度実行してください。\n".repeat(200);
    for (encoding, text) in [
        (encoding_rs::WINDOWS_1252, &western),
        (encoding_rs::UTF_16LE, &western),
        (encoding_rs::WINDOWS_1251, &cyrillic),
        (encoding_rs::SHIFT_JIS, &japanese),
    ] {
        let bytes = encoded(encoding, text);
        for (limit, tokens) in [(1 << 20, 200), (1 << 20, 700), (6_001, 300), (6_001, 5_000)] {
            let formatted = ModelFormat::new(tokens).format(&success(), &kept(limit, &bytes));
            let (_, body) = formatted.split_once("Output:\n").unwrap();
            let line = body.lines().find(|line| numbers(line).is_some()).unwrap();
            let (missing_lines, missing_bytes) = numbers(line).unwrap();
            let (head, tail) = body.split_once(&format!("{line}\n")).unwrap();
            let head = if text.starts_with(head) { head } else { head.strip_suffix('\n').unwrap() };
            assert!(text.starts_with(head) && text.ends_with(tail), "{body}");
            let shown = encoded(encoding, head).len() + encoded(encoding, tail).len();
            assert_eq!(missing_bytes as usize, bytes.len() - shown, "{limit} {tokens} {line}");
            let shown_lines = newlines(head.as_bytes()) + newlines(tail.as_bytes());
            assert_eq!(missing_lines, newlines(text.as_bytes()) - shown_lines, "{limit} {tokens}");
        }
    }
}

/// spec OUTPUT.27: One line that is longer than the budget is cut between two characters.
#[test]
fn one_long_line_is_cut_between_characters() {
    let all = "日本語🦀".repeat(2_000);
    let formatted = ModelFormat::new(200).format(&success(), &printed(&all));
    let (_, body) = formatted.split_once("Output:\n").unwrap();
    let (head, tail) = around_gap(body, &all, 1).unwrap();
    assert!(head.starts_with("日本語🦀日本") && tail.ends_with("語🦀"));
    assert!(formatted.len() > 780, "{}", formatted.len());
}

/// A directory, and the output of one command pushed through capture and spill as a caller does it.
async fn spilled(
    limit: usize,
    policy: SpillPolicy,
    pushes: &[(OutputStream, Vec<u8>)],
) -> (OutputCapture, Option<SpillReport>) {
    let mut capture = OutputCapture::new(limit);
    let mut spill = Spill::new(policy);
    for (stream, bytes) in pushes {
        spill.observe(capture.aggregated(), bytes).await;
        capture.push(*stream, bytes);
    }
    (capture, spill.finish().await)
}

fn files_in(dir: &Path) -> usize {
    std::fs::read_dir(dir).unwrap().count()
}

/// spec OUTPUT.28: As long as memory holds the whole output, nothing is written to disk.
#[tokio::test]
async fn an_output_that_fits_touches_no_disk() {
    let dir = tempfile::tempdir().unwrap();
    let pushes = [(Stdout, vec![b'a'; 50]), (Stderr, vec![b'b'; 50])];
    let inside = dir.path().join("inside");
    let policy = SpillPolicy::made_by(move || {
        std::fs::create_dir(&inside)?;
        Ok(inside.clone())
    });
    let (_, report) = spilled(100, policy.clone(), &pushes).await;
    assert_eq!(report, None);
    assert_eq!(files_in(dir.path()), 0);
    let (_, report) = spilled(99, policy, &pushes).await;
    assert_eq!(report.unwrap().path.unwrap().parent(), Some(&*dir.path().join("inside")));
}

/// spec OUTPUT.29: Once the memory bound is passed, one file has everything that both streams wrote
/// from the first byte on, in the order of arrival.
#[test]
fn a_spill_file_has_everything_in_the_order_of_arrival() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    proptest!(ProptestConfig::with_cases(64), |(
        writes in vec((stream(), any::<u8>(), 0..30_000_usize), 1..20),
        limit in 0..100_000_usize,
    )| {
        let pushes: Vec<(OutputStream, Vec<u8>)> = writes
            .into_iter()
            .map(|(stream, first, length)| (stream, (0..=250).cycle().skip(first.into()).take(length).collect()))
            .collect();
        let dir = tempfile::tempdir().unwrap();
        let (capture, report) =
            runtime.block_on(spilled(limit, SpillPolicy::new(dir.path()), &pushes));
        let all: Vec<u8> = pushes.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        prop_assert_eq!(report.is_some(), capture.aggregated().omitted_bytes() > 0);
        if let Some(report) = report {
            prop_assert_eq!(std::fs::read(report.path.unwrap()).unwrap(), all.clone());
            prop_assert_eq!(report.written_bytes, all.len() as u64);
            prop_assert_eq!((report.dropped_bytes, report.error), (0, None));
        }
    });
}

/// spec OUTPUT.30: A spill file can be opened by its owner only, and its name is its id, which is
/// different every time.
#[cfg(unix)]
#[tokio::test]
async fn a_spill_file_is_private_and_named_by_its_id() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let mut ids = Vec::new();
    for _ in 0..2 {
        let pushes = [(Stdout, vec![b'a'; 50])];
        let (_, report) = spilled(10, SpillPolicy::new(dir.path()), &pushes).await;
        let report = report.unwrap();
        let path = report.path.unwrap();
        let id = report.id.unwrap();
        assert_eq!(path, dir.path().join(&id));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o600);
        assert!(id.starts_with("output-") && id.len() >= 20, "{id}");
        ids.push(id);
    }
    assert_ne!(ids[0], ids[1]);
}

/// spec OUTPUT.31: A spill file stops growing at its limit, 256 MiB unless somebody says otherwise,
/// and the report says how many bytes were not kept.
#[tokio::test]
async fn a_spill_stops_at_its_limit() {
    assert_eq!(SpillPolicy::new("x").limit_bytes, 256 * 1024 * 1024);
    let dir = tempfile::tempdir().unwrap();
    let mut policy = SpillPolicy::new(dir.path());
    policy.limit_bytes = 200_001;
    let pushes: Vec<_> = (0..100_u8).map(|n| (Stdout, vec![n; 10_000])).collect();
    let (_, report) = spilled(1_000, policy, &pushes).await;
    let report = report.unwrap();
    assert_eq!((report.written_bytes, report.dropped_bytes), (200_001, 799_999));
    assert_eq!(report.error, None);
    let all: Vec<u8> = pushes.into_iter().flat_map(|(_, bytes)| bytes).collect();
    assert_eq!(std::fs::read(report.path.unwrap()).unwrap(), all[..200_001]);
}

/// spec OUTPUT.32: When the disk refuses, the output in memory is as complete as ever, and the report
/// says what went wrong.
#[tokio::test]
async fn trouble_with_the_disk_is_reported_and_harms_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("nowhere");
    let pushes: Vec<_> = (0..100_u8).map(|n| (Stdout, vec![n; 10_000])).collect();
    let (capture, report) = spilled(100, SpillPolicy::new(&missing), &pushes).await;
    assert_eq!(capture.aggregated().total_bytes(), 1_000_000);
    let report = report.unwrap();
    assert_eq!((report.id, report.path), (None, None));
    assert_eq!((report.written_bytes, report.dropped_bytes), (0, 1_000_000));
    let error = report.error.unwrap();
    assert!(error.contains("nowhere") && error.contains("full output"), "{error}");
}

/// spec OUTPUT.35: The result of a command says how much of its output is in the file, whether that is
/// all of it, and what went wrong with the disk.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_result_says_what_its_file_holds() {
    use sandgate_process::{ExecuteOptions, Stop};
    let dir = tempfile::tempdir().unwrap();
    let run = async |limit_bytes, mut policy: SpillPolicy| {
        policy.limit_bytes = limit_bytes;
        let command = support::script("head -c 5000 /dev/zero | tr '\\0' x; echo e >&2");
        let options =
            ExecuteOptions { stream_bytes: 1_000, spill: Some(policy), ..Default::default() };
        let done = support::run_with(command, options, &Stop::default()).await.unwrap();
        (done.output.aggregated_output.spill.unwrap(), done.output.aggregated_output.text)
    };

    let (file, text) = run(6_000, SpillPolicy::new(dir.path())).await;
    let id = file.id.clone().unwrap();
    assert_eq!(std::fs::read(dir.path().join(&id)).unwrap().len(), 5_002);
    assert_eq!(file, spill(&id, 5_002, true));
    assert!(text.contains(&format!("; full output: {id} …]")), "{text}");

    let (file, text) = run(3_000, SpillPolicy::new(dir.path())).await;
    let id = file.id.clone().unwrap();
    assert_eq!(file, spill(&id, 3_000, false));
    assert!(text.contains(&format!("; first 3000 bytes: {id} …]")), "{text}");

    let refuse = || Err(std::io::Error::other("there is no room in the house"));
    let (file, text) = run(6_000, SpillPolicy::made_by(refuse)).await;
    assert_eq!((file.id, file.bytes, file.complete), (None, 0, false));
    assert!(file.error.unwrap().ends_with("full output: there is no room in the house"));
    assert!(text.contains(" bytes omitted …]"), "{text}");
}

/// spec OUTPUT.33: A spill that is given up keeps its file and leaves no thread running.
#[test]
fn a_spill_that_is_given_up_leaves_a_file_and_no_thread() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut spill = Spill::new(SpillPolicy::new(dir.path()));
        spill.write(&[b'x'; 100_000]).await;
    });
    // Dropping a runtime waits for the threads that do its blocking work.
    drop(runtime);
    let file = std::fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap();
    assert_eq!(file.metadata().unwrap().len(), 100_000);
}
