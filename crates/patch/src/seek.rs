//! Finds the lines of a hunk in a file, exactly if they are there and else with the customary
//! tolerance.
//!
//! Lines are compared as numbers. Each grade of tolerance has a table that gives every different line
//! of the file one; it is made when that grade is first needed. A hunk with a line that the table does
//! not have is nowhere, without looking; one whose lines are all there is found in one pass over the
//! file, whatever its lines repeat.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;

/// How exactly lines are compared, from the strictest to the loosest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grade {
    /// Byte for byte.
    Exact,
    /// White space at the end does not count.
    TrimmedEnd,
    /// Nor does that at the beginning.
    Trimmed,
    /// And dashes, quotation marks and spaces are taken for their plain forms.
    Plain,
}

impl Grade {
    const ALL: [Self; 4] = [Self::Exact, Self::TrimmedEnd, Self::Trimmed, Self::Plain];

    /// What of a line counts.
    fn key(self, line: &[u8]) -> Cow<'_, [u8]> {
        match self {
            Self::Exact => Cow::Borrowed(line),
            Self::TrimmedEnd => Cow::Borrowed(line.trim_ascii_end()),
            Self::Trimmed => Cow::Borrowed(line.trim_ascii()),
            Self::Plain => plain(line),
        }
    }
}

/// A line in plain punctuation. What is not UTF-8 stays as it is.
fn plain(line: &[u8]) -> Cow<'_, [u8]> {
    let trimmed = line.trim_ascii();
    if trimmed.is_ascii() {
        return Cow::Borrowed(trimmed);
    }
    match std::str::from_utf8(trimmed) {
        Ok(text) => {
            let plain: String = text.chars().map(plain_char).collect();
            Cow::Owned(plain.trim().as_bytes().to_vec())
        }
        Err(_) => Cow::Borrowed(trimmed),
    }
}

fn plain_char(c: char) -> char {
    match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{FE58}' | '\u{FE63}' | '\u{FF0D}' => '-',
        '\u{2018}'..='\u{201B}' | '\u{2032}' | '\u{FF07}' => '\'',
        '\u{201C}'..='\u{201F}' | '\u{2033}' | '\u{FF02}' => '"',
        '\u{00A0}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}' => ' ',
        other => other,
    }
}

/// The lines of a file, ready to be searched.
pub(crate) struct Haystack<'a> {
    lines: Vec<&'a [u8]>,
    tables: [OnceCell<Table<'a>>; 4],
}

/// The lines as numbers.
struct Table<'a> {
    numbers: HashMap<Cow<'a, [u8]>, u32>,
    lines: Vec<u32>,
}

/// Where lines were found to be most alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Nearest {
    /// The index of the line that the first one would be at.
    pub(crate) start: usize,
    /// How many are the same there.
    pub(crate) same: usize,
    /// The index, in what was looked for, of the first that differs.
    pub(crate) first_difference: usize,
}

/// A line that is in a file more often than this says little about where a hunk belongs.
const MOST_PLACES: usize = 200;

/// So many lines of a hunk are enough to find the place that is most like it.
const MOST_CLUES: usize = 200;

impl<'a> Haystack<'a> {
    pub(crate) fn new(lines: Vec<&'a [u8]>) -> Self {
        Self { lines, tables: Default::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(crate) fn line(&self, index: usize) -> Option<&'a [u8]> {
        self.lines.get(index).copied()
    }

    /// The first place at or after a line where all of `needle` stands, by the strictest grade that
    /// finds any.
    pub(crate) fn find(&self, needle: &[&[u8]], from: usize) -> Option<usize> {
        Grade::ALL.into_iter().find_map(|grade| {
            let table = self.table(grade);
            let numbers = table.numbers_of(needle, grade)?;
            let place = first_place(table.lines.get(from..)?, &numbers)?;
            Some(from + place)
        })
    }

    /// Whether `needle` stands at the end of the file, and at or after a line; its place there.
    pub(crate) fn find_at_end(&self, needle: &[&[u8]], from: usize) -> Option<usize> {
        let place = self.len().checked_sub(needle.len()).filter(|place| *place >= from)?;
        let at_end = Grade::ALL.into_iter().any(|grade| {
            let ends = self.lines[place..].iter();
            ends.zip(needle).all(|(line, wanted)| grade.key(line) == grade.key(wanted))
        });
        at_end.then_some(place)
    }

    /// The place in the whole file where most lines of `needle` stand as they should. Blank lines say
    /// nothing, and neither do those that are everywhere.
    pub(crate) fn nearest(&self, needle: &[&[u8]]) -> Option<Nearest> {
        let table = self.table(Grade::Plain);
        let mut places: HashMap<u32, Vec<usize>> = HashMap::new();
        let clues = needle.iter().enumerate().filter(|(_, line)| !line.trim_ascii().is_empty());
        let clues: Vec<(usize, u32)> = clues
            .filter_map(|(index, line)| Some((index, *table.numbers.get(&Grade::Plain.key(line))?)))
            .take(MOST_CLUES)
            .collect();
        for (_, number) in &clues {
            places.insert(*number, Vec::new());
        }
        for (index, number) in table.lines.iter().enumerate() {
            if let Some(found) = places.get_mut(number).filter(|found| found.len() <= MOST_PLACES) {
                found.push(index);
            }
        }
        let mut votes: HashMap<usize, usize> = HashMap::new();
        for (index, number) in clues {
            for place in places[&number].iter().filter(|_| places[&number].len() <= MOST_PLACES) {
                if let Some(start) = place.checked_sub(index) {
                    *votes.entry(start).or_default() += 1;
                }
            }
        }
        let (start, same) =
            votes.into_iter().max_by_key(|(start, same)| (*same, std::cmp::Reverse(*start)))?;
        let differs = |index: &usize| match self.line(start + index) {
            Some(line) => Grade::Plain.key(line) != Grade::Plain.key(needle[*index]),
            None => true,
        };
        let first_difference = (0..needle.len()).find(differs).unwrap_or(needle.len());
        Some(Nearest { start, same, first_difference })
    }

    fn table(&self, grade: Grade) -> &Table<'a> {
        self.tables[grade as usize].get_or_init(|| Table::new(&self.lines, grade))
    }
}

impl<'a> Table<'a> {
    fn new(lines: &[&'a [u8]], grade: Grade) -> Self {
        let mut numbers = HashMap::with_capacity(lines.len());
        let lines = lines
            .iter()
            .map(|line| {
                let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                *numbers.entry(grade.key(line)).or_insert(next)
            })
            .collect();
        Self { numbers, lines }
    }

    /// The numbers of some lines, if the file has all of them.
    fn numbers_of(&self, lines: &[&[u8]], grade: Grade) -> Option<Vec<u32>> {
        lines.iter().map(|line| self.numbers.get(&grade.key(line)).copied()).collect()
    }
}

/// The first place of one sequence in another, after Knuth, Morris and Pratt: a hunk of a thousand
/// equal lines in a file of a million such costs no more than any other.
fn first_place(haystack: &[u32], needle: &[u32]) -> Option<usize> {
    if needle.is_empty() {
        return Some(0);
    }
    let mut borders = vec![0; needle.len()];
    let mut border = 0;
    for index in 1..needle.len() {
        while border > 0 && needle[index] != needle[border] {
            border = borders[border - 1];
        }
        border += usize::from(needle[index] == needle[border]);
        borders[index] = border;
    }
    let mut matched = 0;
    for (index, number) in haystack.iter().enumerate() {
        while matched > 0 && *number != needle[matched] {
            matched = borders[matched - 1];
        }
        matched += usize::from(*number == needle[matched]);
        if matched == needle.len() {
            return Some(index + 1 - needle.len());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn find(file: &[&str], needle: &[&str], from: usize) -> Option<usize> {
        let file = Haystack::new(file.iter().map(|line| line.as_bytes()).collect());
        let needle: Vec<&[u8]> = needle.iter().map(|line| line.as_bytes()).collect();
        file.find(&needle, from)
    }

    /// spec PATCH.20: Lines are looked for as they were written first, then without the white space at
    /// their ends, then without that around them, and last with dashes, quotation marks and spaces in
    /// their plain forms.
    #[test]
    fn the_strictest_grade_that_finds_anything_wins() {
        assert_eq!(find(&["a ", "a"], &["a"], 0), Some(1), "exact");
        assert_eq!(find(&[" a", "a \t"], &["a"], 0), Some(1), "white space at the end");
        assert_eq!(find(&["\u{a0}a", "  a "], &["a"], 0), Some(1), "white space around");
        let fancy = ["say \u{201c}no\u{201d} \u{2014}\u{a0}it\u{2019}s"];
        assert_eq!(find(&fancy, &["  say \"no\" - it's"], 0), Some(0), "punctuation");
        assert_eq!(find(&["a"], &["b"], 0), None);
        assert_eq!(find(&["a b"], &["ab"], 0), None, "white space within a line always counts");
    }

    #[test]
    fn the_first_place_after_the_one_before_is_taken() {
        let file = ["x", "y", "x", "y"];
        assert_eq!(find(&file, &["x", "y"], 0), Some(0));
        assert_eq!(find(&file, &["x", "y"], 1), Some(2));
        assert_eq!(find(&file, &["x", "y"], 3), None);
        assert_eq!(find(&file, &["x", "y"], 9), None);
        assert_eq!(find(&file, &[], 4), Some(4));
    }

    #[test]
    fn what_is_not_utf_8_is_compared_byte_for_byte() {
        let file = Haystack::new(vec![b"caf\xe9 ", b"caf\xe8"]);
        assert_eq!(file.find(&[b"caf\xe9"], 0), Some(0));
        assert_eq!(file.find(&["caf\u{e9}".as_bytes()], 0), None);
    }

    proptest! {
        #[test]
        fn a_sequence_is_found_where_a_plain_search_finds_it(
            haystack in prop::collection::vec(0u32..3, 0..40),
            needle in prop::collection::vec(0u32..3, 1..6),
        ) {
            let plainly = haystack.windows(needle.len()).position(|window| window == needle);
            prop_assert_eq!(first_place(&haystack, &needle), plainly);
        }
    }
}
