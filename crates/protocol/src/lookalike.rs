//! Letters that look like others: a path in which one letter is Cyrillic is another path, and reads the same.
//!
//! It finds what a person cannot see and says it beside the question. It decides nothing, and words of a language
//! that is written in such letters are left alone.

/// Letters that most fonts draw like one of ASCII, and that one. Sorted.
#[rustfmt::skip] // A table, laid out by hand.
const LETTERS: &[(char, char)] = &[
    ('\u{131}', 'i'), ('\u{1c3}', '!'), ('\u{251}', 'a'), ('\u{261}', 'g'), ('\u{269}', 'i'),
    // Greek.
    ('\u{37e}', ';'), ('\u{391}', 'A'), ('\u{392}', 'B'), ('\u{395}', 'E'), ('\u{396}', 'Z'),
    ('\u{397}', 'H'), ('\u{399}', 'I'), ('\u{39a}', 'K'), ('\u{39c}', 'M'), ('\u{39d}', 'N'),
    ('\u{39f}', 'O'), ('\u{3a1}', 'P'), ('\u{3a4}', 'T'), ('\u{3a5}', 'Y'), ('\u{3a7}', 'X'),
    ('\u{3b1}', 'a'), ('\u{3b9}', 'i'), ('\u{3ba}', 'k'), ('\u{3bd}', 'v'), ('\u{3bf}', 'o'),
    ('\u{3c1}', 'p'), ('\u{3c5}', 'u'), ('\u{3c7}', 'x'), ('\u{3f2}', 'c'), ('\u{3f3}', 'j'),
    // Cyrillic.
    ('\u{405}', 'S'), ('\u{406}', 'I'), ('\u{408}', 'J'), ('\u{410}', 'A'), ('\u{412}', 'B'),
    ('\u{415}', 'E'), ('\u{41a}', 'K'), ('\u{41c}', 'M'), ('\u{41d}', 'H'), ('\u{41e}', 'O'),
    ('\u{420}', 'P'), ('\u{421}', 'C'), ('\u{422}', 'T'), ('\u{423}', 'Y'), ('\u{425}', 'X'),
    ('\u{430}', 'a'), ('\u{435}', 'e'), ('\u{43a}', 'k'), ('\u{43e}', 'o'), ('\u{440}', 'p'),
    ('\u{441}', 'c'), ('\u{443}', 'y'), ('\u{445}', 'x'), ('\u{455}', 's'), ('\u{456}', 'i'),
    ('\u{458}', 'j'), ('\u{475}', 'v'), ('\u{4bb}', 'h'), ('\u{4c0}', 'I'), ('\u{4cf}', 'l'),
    ('\u{501}', 'd'), ('\u{51b}', 'q'), ('\u{51d}', 'w'),
    // Armenian.
    ('\u{566}', 'q'), ('\u{570}', 'h'), ('\u{578}', 'n'), ('\u{57d}', 'u'), ('\u{581}', 'g'),
    ('\u{585}', 'o'),
    // What stands between words and parts of paths.
    ('\u{2024}', '.'), ('\u{2044}', '/'), ('\u{2215}', '/'), ('\u{2223}', '|'), ('\u{2236}', ':'),
    ('\u{29f8}', '/'), ('\u{a4f8}', '.'), ('\u{a789}', ':'),
];

/// The most that are named.
const MOST: usize = 3;
/// The longest word that one is named in, in characters.
const LONGEST_WORD: usize = 60;

/// What an ASCII character a letter looks like, if it is another one.
fn looks_like(c: char) -> Option<char> {
    if c.is_ascii() {
        return None;
    }
    match u32::from(c) {
        // The wide forms of ASCII, and its letters in the styles of mathematics.
        point @ 0xff01..=0xff5e => char::from_u32(point - 0xff01 + 0x21),
        point @ 0x1d400..=0x1d6a3 => {
            let place = (point - 0x1d400) % 52;
            let first = if place < 26 { 'A' } else { 'a' };
            char::from_u32(u32::from(first) + place % 26)
        }
        _ => {
            let found = LETTERS.binary_search_by_key(&c, |(letter, _)| *letter);
            found.ok().map(|at| LETTERS[at].1)
        }
    }
}

/// What in these texts looks like something else, a line each.
pub(crate) fn lookalikes<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in texts.into_iter().flat_map(str::split_whitespace).filter(|word| !word.is_ascii()) {
        let Some((letter, other)) = misleading(word) else { continue };
        let shown: String = match word.chars().count() > LONGEST_WORD {
            true => word.chars().take(LONGEST_WORD).chain(['…']).collect(),
            false => word.to_owned(),
        };
        let line = format!("{letter} in {shown} is U+{:04X}, not {other}", u32::from(letter));
        if !found.contains(&line) {
            found.push(line);
        }
        if found.len() == MOST {
            break;
        }
    }
    found
}

/// The first letter in a word without blanks that makes it look like another word.
fn misleading(word: &str) -> Option<(char, char)> {
    let first_in = |part: &str| part.chars().find_map(|c| Some((c, looks_like(c)?)));
    // A sign between letters is in no language's alphabet.
    let sign = word.chars().find_map(|c| {
        let other = looks_like(c).filter(|other| !other.is_ascii_alphanumeric())?;
        Some((c, other))
    });
    if sign.is_some() && word.contains(|c: char| c.is_ascii_alphanumeric()) {
        return sign;
    }
    word.split(|c: char| !c.is_alphanumeric()).find_map(|part| {
        let mixed = part.contains(|c: char| c.is_ascii_alphabetic());
        // A word of such letters alone is not what anybody means who writes in that language, but a short one is.
        let alone = part.chars().count() > 3 && part.chars().all(|c| looks_like(c).is_some());
        (mixed || alone).then(|| first_in(part)).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        lookalikes([text])
    }

    #[test]
    fn a_letter_of_another_alphabet_is_named() {
        assert!(LETTERS.is_sorted());
        assert_eq!(of("cat /home/me/.ѕsh/id"), ["ѕ in /home/me/.ѕsh/id is U+0455, not s"]);
        assert_eq!(of("curl https://аррӏе.com"), ["а in https://аррӏе.com is U+0430, not a"]);
        assert_eq!(of("ls /etc∕passwd"), ["∕ in /etc∕passwd is U+2215, not /"]);
        assert_eq!(of("ｒm x; 𝗅s"), ["ｒ in ｒm is U+FF52, not r", "𝗅 in 𝗅s is U+1D5C5, not l"]);
        assert_eq!(of(&"аbc ".repeat(9)).len(), 1);
        assert_eq!(of("аb аc аd аe").len(), MOST);
        assert!(of(&format!("а{}", "b".repeat(500)))[0].chars().count() < 100);
    }

    #[test]
    fn a_language_is_left_alone() {
        for text in [
            "git commit -m 'Исправлена ошибка в файле README.md'",
            "grep -r 'ένα αρχείο' src",
            "echo а о с рост",
            "cat données/été.txt",
            "cat 文档/说明.md",
            "printf 'α-β %s' x",
            "echo ԱԲԳ հոդված",
            "ls -la",
        ] {
            assert_eq!(of(text), Vec::<String>::new(), "{text}");
        }
    }
}
