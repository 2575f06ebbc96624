//! The beginning of an output, for logs.

/// The most bytes of an output that telemetry shows.
pub const TELEMETRY_PREVIEW_MAX_BYTES: usize = 2048;
/// The most lines of it.
pub const TELEMETRY_PREVIEW_MAX_LINES: usize = 50;
/// What stands in the place of the rest.
pub const TELEMETRY_PREVIEW_TRUNCATION_NOTICE: &str = "[output truncated]";

/// The beginning of an output: harmless on a terminal, no longer than its two limits, cut between two
/// characters, and with a notice where something is left out.
pub fn telemetry_preview(output: &str) -> String {
    let lines = output.split_inclusive('\n').take(TELEMETRY_PREVIEW_MAX_LINES);
    let end = lines.map(str::len).sum::<usize>().min(TELEMETRY_PREVIEW_MAX_BYTES);
    let end = output.floor_char_boundary(end);
    // What is made harmless can become longer, and the limit is on what is shown.
    let shown = sandgate_process::harmless(&output[..end]);
    let kept = shown.floor_char_boundary(TELEMETRY_PREVIEW_MAX_BYTES);
    if end == output.len() && kept == shown.len() {
        return shown.into_owned();
    }
    let shown = &shown[..kept];
    let gap = if shown.is_empty() || shown.ends_with('\n') { "" } else { "\n" };
    format!("{shown}{gap}{TELEMETRY_PREVIEW_TRUNCATION_NOTICE}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// spec TELEMETRY.5: A preview of an output is at most 2048 bytes and 50 lines of its beginning,
    /// cut between two characters and harmless on a terminal, and `[output truncated]` stands where
    /// something was left out.
    #[test]
    fn a_preview_is_short_whole_and_harmless() {
        assert_eq!(telemetry_preview("short\n"), "short\n");
        assert_eq!(telemetry_preview(""), "");
        let fifty = "x\n".repeat(50);
        assert_eq!(telemetry_preview(&fifty), fifty);
        assert_eq!(telemetry_preview(&"x\n".repeat(51)), format!("{fifty}[output truncated]"));
        let exact = "x".repeat(2048);
        assert_eq!(telemetry_preview(&exact), exact);
        // The character of three bytes would reach over the limit.
        let over = format!("{}€", "x".repeat(2047));
        let cut = format!("{}\n[output truncated]", "x".repeat(2047));
        assert_eq!(telemetry_preview(&over), cut);
        assert!(!telemetry_preview("a\u{1b}]52;c;x\u{7}b").contains('\u{1b}'));
    }

    proptest! {
        #[test]
        fn no_output_is_previewed_beyond_the_limits(output in "(?s).{0,3000}") {
            let preview = telemetry_preview(&output);
            let rest = preview.strip_suffix(TELEMETRY_PREVIEW_TRUNCATION_NOTICE);
            let shown = rest.unwrap_or(&preview);
            prop_assert!(shown.len() <= TELEMETRY_PREVIEW_MAX_BYTES + 1);
            prop_assert!(shown.lines().count() <= TELEMETRY_PREVIEW_MAX_LINES);
            let escape = char::from(0x1b);
            prop_assert!(!shown.contains(escape));
        }
    }
}
