//! Why an installer failed, in one line.

/// The longest that a reason is.
const LONGEST: usize = 140;

/// The line that says most, without addresses: those differ from place to place.
pub(super) fn of(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let is_telling = |line: &&str| {
        line.to_lowercase().contains("error")
            && !line.contains("code E")
            && !line.contains("complete log")
    };
    let line = lines.iter().copied().find(is_telling).or(lines.last().copied());
    let line = line.unwrap_or("its installer failed and said nothing");
    let line = ["npm error ", "ERROR: ", "error: "]
        .iter()
        .fold(line, |line, prefix| line.strip_prefix(prefix).unwrap_or(line));
    let words: Vec<&str> = line
        .split_whitespace()
        .map(|word| if word.contains("://") { "the registry" } else { word })
        .collect();
    words.join(" ").chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn the_line_that_says_most_is_kept() {
        let npm = "npm error code ETARGET\nnpm error notarget No matching version found for x@^1.0.6.\n\
                   npm error A complete log of this run can be found in: /root/log\n";
        assert_eq!(of(npm), "notarget No matching version found for x@^1.0.6.");
        let cargo =
            "error: could not find `x` in registry https://example.org/index with version `*`\n";
        assert_eq!(of(cargo), "could not find `x` in registry the registry with version `*`");
        assert_eq!(of("Terminated\n"), "Terminated");
        assert_eq!(of(""), "its installer failed and said nothing");
    }
}
