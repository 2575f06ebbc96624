//! Bytes into text, honestly: what is UTF-8 stays as it is, what is clearly something else is read as
//! that, and what is neither becomes UTF-8 with a replacement character for each thing unreadable.
//!
//! Nothing here changes what a program meant to say; making text safe to show is another matter and
//! another module.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// Text, and how it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// The text, without a byte order mark.
    pub text: String,
    /// The name of the encoding it was read as, as the WHATWG standard spells it.
    pub encoding: &'static str,
    /// Some bytes meant nothing in that encoding; each such place is a U+FFFD in the text.
    pub had_errors: bool,
}

/// Reads bytes of unknown encoding as text.
///
/// ```
/// use sandgate_process::decode;
///
/// let decoded = decode("naïve".as_bytes());
/// assert_eq!((decoded.text.as_str(), decoded.encoding), ("naïve", "UTF-8"));
/// let decoded = decode(b"\xff\xfeh\0i\0");
/// assert_eq!((decoded.text.as_str(), decoded.encoding), ("hi", "UTF-16LE"));
/// ```
pub fn decode(bytes: &[u8]) -> Decoded {
    let encoding = detect(bytes);
    let (text, had_errors) = decode_as(encoding, &bytes[mark_length(encoding, bytes)..]);
    Decoded { text, encoding: encoding.name(), had_errors }
}

/// The encoding that bytes are most probably written in.
pub(super) fn detect(bytes: &[u8]) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(bytes) {
        return encoding;
    }
    let has_zeros = memchr::memchr(0, bytes).is_some();
    // UTF-16 without a mark is often valid UTF-8 full of zeros, so it is looked for first.
    if has_zeros && let Some(encoding) = detect_utf16(bytes) {
        return encoding;
    }
    let is_utf8 = || std::str::from_utf8(bytes).is_ok() || Census::of(bytes).is_utf8();
    if has_zeros || is_utf8() || is_binary(bytes) {
        return UTF_8;
    }
    guess_legacy(bytes)
}

/// Reads bytes as text of a known encoding; a byte order mark in them is a character like any other.
pub(super) fn decode_as(encoding: &'static Encoding, bytes: &[u8]) -> (String, bool) {
    if encoding != UTF_8 {
        let (text, had_errors) = encoding.decode_without_bom_handling(bytes);
        return (text.into_owned(), had_errors);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), false),
        // Twice as fast as the other decoder where much is unreadable, and of one mind with it.
        Err(_) => (String::from_utf8_lossy(bytes).into_owned(), true),
    }
}

/// The length of the byte order mark, if there is one of that encoding.
pub(super) fn mark_length(encoding: &'static Encoding, bytes: &[u8]) -> usize {
    let mark = Encoding::for_bom(bytes).filter(|(marked, _)| *marked == encoding);
    mark.map_or(0, |(_, length)| length)
}

/// How many of the bytes the first `text_bytes` of their text were read from.
pub(super) fn source_length(encoding: &'static Encoding, bytes: &[u8], text_bytes: usize) -> usize {
    /// No byte becomes more than three of text, and no more than three wait for those after them. So
    /// a step of an eighth of the way never goes too far, except by one byte at its very end.
    const SHARE: usize = 8;
    const LONGEST_STEP: usize = 1024;
    if encoding == UTF_8 {
        return utf8_source_length(bytes, text_bytes);
    }
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut text = [0; 4 * LONGEST_STEP];
    let (mut read, mut written) = (0, 0);
    while written < text_bytes && read < bytes.len() {
        let step = ((text_bytes - written) / SHARE).clamp(1, LONGEST_STEP).min(bytes.len() - read);
        let (_, _, more, _) = decoder.decode_to_utf8(&bytes[read..read + step], &mut text, false);
        written += more;
        if written > text_bytes {
            // This byte ended something unreadable and is a character of its own.
            break;
        }
        read += step;
    }
    read
}

/// The same for UTF-8, where something unreadable may be followed by the start of a character.
fn utf8_source_length(bytes: &[u8], text_bytes: usize) -> usize {
    let (mut read, mut left) = (0, text_bytes);
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid().len();
        if left <= valid {
            return read + left;
        }
        read += valid + chunk.invalid().len();
        left = (left - valid).saturating_sub(char::REPLACEMENT_CHARACTER.len_utf8());
    }
    read
}

/// How much of the bytes, multi-byte sequences only, is UTF-8 and how much is not.
struct Census {
    good: usize,
    bad: usize,
}

impl Census {
    /// So many decide; to count on would only take time.
    const ENOUGH: usize = 10_000;

    fn of(bytes: &[u8]) -> Self {
        let mut census = Self { good: 0, bad: 0 };
        for chunk in bytes.utf8_chunks() {
            if census.good + census.bad > Self::ENOUGH {
                break;
            }
            // In valid text the bytes that start a character but are not ASCII start a long one.
            census.good += chunk.valid().bytes().filter(|byte| *byte >= 0xC0).count();
            census.bad += usize::from(!chunk.invalid().is_empty());
        }
        census
    }

    /// Valid, or UTF-8 with a few bad places: text in another encoding almost never happens to
    /// contain valid multi-byte sequences, let alone three of them for each invalid one.
    fn is_utf8(&self) -> bool {
        self.bad == 0 || self.good >= self.bad.saturating_mul(3)
    }
}

/// How much of the beginning is looked at where looking at everything would teach nothing more.
const SAMPLE_BYTES: usize = 64 * 1024;

/// Not text at all: more than a twentieth of it are control codes that no text contains.
fn is_binary(bytes: &[u8]) -> bool {
    let sample = &bytes[..bytes.len().min(SAMPLE_BYTES)];
    let controls = sample.iter().filter(|byte| matches!(byte, 0..=6 | 0x0E..=0x1A | 0x1C..=0x1F));
    controls.count() * 20 > sample.len()
}

/// Recognises UTF-16 without a byte order mark. In an alphabet's text nearly all upper bytes are
/// small, some of them (spaces, digits, line ends) are zero, and lower bytes are not. Lists of short
/// names between zeros look much like it, but have no spaces; arrays of small numbers do too, but
/// read as text they are control characters.
fn detect_utf16(bytes: &[u8]) -> Option<&'static Encoding> {
    /// The upper bytes of Latin, Greek, Cyrillic, Hebrew and Arabic letters.
    const ALPHABETS: std::ops::RangeInclusive<u8> = 0..=6;
    let (units, _) = bytes[..bytes.len().min(SAMPLE_BYTES)].as_chunks::<2>();
    let looks_like_text = |upper: usize| {
        let count = |condition: &dyn Fn(&[u8; 2]) -> bool| {
            units.iter().filter(|unit| condition(unit)).count()
        };
        count(&|unit| ALPHABETS.contains(&unit[upper])) * 10 >= units.len() * 9
            && count(&|unit| unit[upper] == 0) * 8 >= units.len()
            && count(&|unit| unit[1 - upper] == 0) * 50 <= units.len()
    };
    let encoding = match () {
        () if units.len() < 4 => return None,
        () if looks_like_text(1) => UTF_16LE,
        () if looks_like_text(0) => UTF_16BE,
        () => return None,
    };
    let (text, had_errors) = encoding.decode_without_bom_handling(units.as_flattened());
    let is_odd = |c: &char| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{1b}');
    let plausible = !had_errors
        && text.contains(char::is_whitespace)
        && text.chars().filter(is_odd).count() * 20 <= units.len();
    plausible.then_some(encoding)
}

/// Asks the detector that browsers use. It is shown the first piece that is not plain ASCII; such a
/// piece starts at a character border in every encoding it knows.
fn guess_legacy(bytes: &[u8]) -> &'static Encoding {
    let start = bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or(0);
    // A little ASCII before it tells the detector that the first character stands after a space.
    let start = start.saturating_sub(1);
    let sample = &bytes[start..bytes.len().min(start + SAMPLE_BYTES)];
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(sample, sample.len() == bytes.len() - start);
    detector.guess(None, Utf8Detection::Deny)
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoding_rs::{BIG5, EUC_JP, EUC_KR, GBK, KOI8_R, SHIFT_JIS, WINDOWS_1251, WINDOWS_1252};

    /// spec OUTPUT.11: Output in Shift_JIS, EUC-JP, GBK, Big5, EUC-KR, KOI8-R, windows-1251 and
    /// windows-1252 is recognised and reads as the text it is.
    #[test]
    fn real_sentences_in_legacy_encodings_read_as_what_they_are() {
        let sentences = [
            (SHIFT_JIS, "ファイルが見つかりません。パスを確認してからもう一度実行してください。"),
            (EUC_JP, "ファイルが見つかりません。パスを確認してからもう一度実行してください。"),
            (GBK, "系统找不到指定的文件。请检查路径，然后重新运行该命令。"),
            (BIG5, "系統找不到指定的檔案。請檢查路徑，然後重新執行該命令。"),
            (EUC_KR, "지정된 파일을 찾을 수 없습니다. 경로를 확인한 다음 다시 실행하십시오."),
            (KOI8_R, "Не удалось открыть файл: нет такого файла или каталога."),
            (WINDOWS_1251, "Не удалось открыть файл: нет такого файла или каталога."),
            (WINDOWS_1252, "Größe überschritten: der Schlüssel für „Käse“ wurde nicht geändert."),
        ];
        for (encoding, sentence) in sentences {
            let text = format!("error 2: {sentence}\n");
            let (bytes, _, unmappable) = encoding.encode(&text);
            assert!(!unmappable, "{}", encoding.name());
            let decoded = decode(&bytes);
            assert_eq!(decoded.text, text);
            // The detector knows KOI8 by its Ukrainian variant, which has all Russian letters.
            let expected = if encoding == KOI8_R { "KOI8-U" } else { encoding.name() };
            assert_eq!(decoded.encoding, expected);
            assert!(!decoded.had_errors);
        }
    }

    fn utf16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(to_bytes).collect()
    }

    /// spec OUTPUT.12: UTF-16 is recognised by its byte order mark, or without one by where its zero
    /// bytes are; names between zero bytes and arrays of small numbers are not taken for it.
    #[test]
    fn utf16_is_recognised_with_and_without_a_mark() {
        let text = "C:\\Users\\Žofie> dir\r\n 3 файла найдено, 1 024 байт\r\n";
        for (to_bytes, name) in
            [(u16::to_le_bytes as fn(u16) -> _, "UTF-16LE"), (u16::to_be_bytes, "UTF-16BE")]
        {
            let plain = decode(&utf16(text, to_bytes));
            assert_eq!((plain.text.as_str(), plain.encoding), (text, name));
            let marked = decode(&utf16(&format!("\u{feff}{text}"), to_bytes));
            assert_eq!((marked.text.as_str(), marked.encoding), (text, name));
        }
        let numbers: Vec<u8> = (1..200_u16).flat_map(|n| (n % 20).to_le_bytes()).collect();
        for other in [&numbers[..], b"a\0b\0c\0d\0e\0", b"x.c\0y.c\0z.c\0", b"0123 456\0ab cdefg\0"]
        {
            assert_eq!(decode(other).encoding, "UTF-8", "{other:?}");
        }
    }

    /// spec OUTPUT.9: Output that is valid UTF-8 is shown unchanged, but for a byte order mark at its
    /// start.
    #[test]
    fn valid_utf8_is_left_as_it_is() {
        let text = "naïve – 日本語 – 🦀\n";
        let expected =
            |text: &str| Decoded { text: text.to_owned(), encoding: "UTF-8", had_errors: false };
        assert_eq!(decode(text.as_bytes()), expected(text));
        assert_eq!(decode(format!("\u{feff}{text}").as_bytes()), expected(text));
        assert_eq!(decode(b""), expected(""));
        assert_eq!(decode(b"a\0b\0\0c\n"), expected("a\0b\0\0c\n"));
    }

    /// spec OUTPUT.10: UTF-8 with a few bad bytes, and binary data, are read as UTF-8 with U+FFFD in
    /// place of what cannot be read, and the result says so.
    #[test]
    fn bad_bytes_and_binary_data_become_replacement_characters() {
        let mostly = decode("žluťoučký kůň\n".repeat(3).as_bytes());
        assert!(!mostly.had_errors);
        let mut bytes = "žluťoučký kůň ".as_bytes().to_vec();
        bytes.extend_from_slice(b"\xff\xfe!\n");
        let decoded = decode(&bytes);
        assert_eq!(decoded.text, "žluťoučký kůň \u{fffd}\u{fffd}!\n");
        assert_eq!((decoded.encoding, decoded.had_errors), ("UTF-8", true));

        let binary: Vec<u8> = (0..=255).cycle().take(4096).collect();
        assert_eq!(decode(&binary).encoding, "UTF-8");
        let without_zeros: Vec<u8> = (1..=255).cycle().take(4096).collect();
        assert_eq!(decode(&without_zeros).encoding, "UTF-8");
    }

    #[test]
    fn a_single_accented_letter_in_english_output_is_western() {
        let decoded = decode(b"checking caf\xe9.txt ... done\n");
        assert_eq!(decoded.text, "checking café.txt ... done\n");
        assert_eq!(decoded.encoding, "windows-1252");
    }
}
