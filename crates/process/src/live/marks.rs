//! Reads the marks that a shell prints around its prompts and commands, and tells prompt, echo and
//! output apart.
//!
//! A mark is an OSC 133 sequence, the one that terminals know, with a nonce of ours in it:
//! `ESC ] 133 ; A ; aid=NONCE BEL`. A prompt lies between `A` and `B`, what is typed at it between `B` and
//! `C`, what the command prints between `C` and `D`, which carries its exit status. Marks without our
//! nonce belong to somebody else, such as a shell on another machine, and are bytes like all others.
//!
//! The nonce keeps strangers' marks out by accident, not by force: whoever runs in the shell can read
//! it. So nothing that matters for safety may rest on a mark.
//!
//! Not every round has every mark. An empty line, and Ctrl-C at the prompt, lead to `D` or straight to `A`
//! without a `C`: nothing was run. A `B` that comes again is a prompt drawn again. A mark that makes no
//! sense where it stands, for instance because a command printed the prompt's text, is dropped.

use memchr::{memchr, memchr2};

/// How many bytes a mark has at most between `133;` and its end, without the nonce.
const MAX_BODY: usize = 64;

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
/// The C1 control characters that open an OSC and close a string, as one byte each; in UTF-8 the byte
/// [`C1_LEAD`] stands before them.
const OSC: u8 = 0x9d;
const ST: u8 = 0x9c;
const C1_LEAD: u8 = 0xc2;

/// Takes a terminal's bytes apart, in pieces of any size.
#[derive(Debug)]
pub(crate) struct Marks {
    /// The parameter that makes a mark ours: `aid=NONCE`.
    ours: Vec<u8>,
    region: Region,
    /// The beginning of what may become a mark.
    held: Vec<u8>,
}

/// A part of what a terminal was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// What a command printed, and everything before the first mark.
    Output(&'a [u8]),
    /// What the shell printed to ask for the next command.
    Prompt(&'a [u8]),
    /// What shows the command that is being typed.
    Echo(&'a [u8]),
    /// A mark; its own bytes are left out.
    Mark(Mark),
}

/// A border between two parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A prompt begins.
    PromptStart,
    /// The prompt is complete: the shell waits for a command.
    PromptEnd,
    /// A command begins to run.
    CommandStart,
    /// It has ended. Without a [`Mark::CommandStart`] before it nothing was run: the line was empty, or
    /// was given up.
    CommandEnd {
        /// Its exit status, if the shell told.
        status: Option<i32>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Region {
    /// No mark has come yet.
    Unmarked,
    Prompt,
    Echo,
    /// The same for a shell that cannot say when a command begins: its line's end says so.
    EchoOfOneLine,
    Output,
    /// A command has ended, and the next prompt has not begun.
    Between,
}

impl Marks {
    /// Knows its own marks by a nonce of letters and digits.
    pub(crate) fn new(nonce: &str) -> Self {
        let ours = format!("aid={nonce}").into_bytes();
        Self { ours, region: Region::Unmarked, held: Vec::new() }
    }

    /// Whether a mark of ours has ever come.
    #[cfg(test)]
    pub(crate) fn seen(&self) -> bool {
        self.region != Region::Unmarked
    }

    /// Whether the shell has shown its prompt and no command has begun since.
    pub(crate) fn at_prompt(&self) -> bool {
        matches!(self.region, Region::Echo | Region::EchoOfOneLine)
    }

    /// Reads on, and hands out each part as soon as it is sure what it is. Only the beginning of what may
    /// become a mark of ours is kept back, at most a hundred bytes or so.
    pub(crate) fn read(&mut self, bytes: &[u8], mut each: impl FnMut(Piece<'_>)) {
        if self.held.is_empty() {
            self.take_apart(bytes, &mut each);
        } else {
            let mut joined = std::mem::take(&mut self.held);
            joined.extend_from_slice(bytes);
            self.take_apart(&joined, &mut each);
        }
    }

    /// Hands out what was kept back: nothing follows.
    pub(crate) fn finish(&mut self, mut each: impl FnMut(Piece<'_>)) {
        let held = std::mem::take(&mut self.held);
        self.hand_out(&held, &mut each);
    }

    fn take_apart(&mut self, bytes: &[u8], each: &mut impl FnMut(Piece<'_>)) {
        // Bytes before `from` are handed out, and before `at` they are known to begin no mark.
        let (mut from, mut at) = (0, 0);
        while let Some(found) = memchr2(ESC, OSC, &bytes[at..]) {
            let introducer = at + found;
            let in_utf8 = bytes[introducer] == OSC
                && bytes[from..introducer].last().is_some_and(|before| *before == C1_LEAD);
            let start = introducer - usize::from(in_utf8);
            match self.sequence(&bytes[introducer..]) {
                Sequence::Other => at = introducer + 1,
                Sequence::Unfinished => {
                    self.hand_out(&bytes[from..start], each);
                    self.held.extend_from_slice(&bytes[start..]);
                    return;
                }
                Sequence::Ours(mark, length) => {
                    self.hand_out(&bytes[from..start], each);
                    self.pass(mark, each);
                    at = introducer + length;
                    from = at;
                }
            }
        }
        let end = bytes.len() - usize::from(bytes[from..].last() == Some(&C1_LEAD));
        self.hand_out(&bytes[from..end], each);
        self.held.extend_from_slice(&bytes[end..]);
    }

    /// What begins with this introducer.
    fn sequence(&self, bytes: &[u8]) -> Sequence {
        let introducer: &[u8] = if bytes[0] == OSC { &[OSC] } else { b"\x1b]" };
        let Some(body_at) = after(bytes, introducer, b"133;") else {
            let expected = [introducer, b"133;"].concat();
            let may_become = expected.starts_with(bytes);
            return if may_become { Sequence::Unfinished } else { Sequence::Other };
        };
        let limit = MAX_BODY + self.ours.len();
        let body = &bytes[body_at..];
        let Some(length) = body.iter().take(limit + 1).position(|b| !matches!(b, 0x20..=0x7e))
        else {
            return if body.len() > limit { Sequence::Other } else { Sequence::Unfinished };
        };
        let end = match body[length..] {
            [BEL | ST, ..] => 1,
            [ESC, b'\\', ..] | [C1_LEAD, ST, ..] => 2,
            [ESC | C1_LEAD] => return Sequence::Unfinished,
            _ => return Sequence::Other,
        };
        match self.ours(&body[..length]) {
            Some(mark) => Sequence::Ours(mark, body_at + length + end),
            None => Sequence::Other,
        }
    }

    fn ours(&self, body: &[u8]) -> Option<Told> {
        let mut fields = body.split(|b| *b == b';');
        let letter = fields.next()?;
        let fields: Vec<&[u8]> = fields.collect();
        if !fields.contains(&&self.ours[..]) {
            return None;
        }
        Some(match letter {
            b"A" => Told::PromptStart,
            b"B" if fields.contains(&&b"echo=line"[..]) => Told::PromptEnd(Region::EchoOfOneLine),
            b"B" => Told::PromptEnd(Region::Echo),
            b"C" => Told::CommandStart,
            b"D" => {
                let status = fields.first().and_then(|field| std::str::from_utf8(field).ok());
                Told::CommandEnd(status.and_then(|status| status.parse().ok()))
            }
            _ => return None,
        })
    }

    /// Crosses a border, if it is one where we are.
    fn pass(&mut self, told: Told, each: &mut impl FnMut(Piece<'_>)) {
        use Region::{Between, Echo, EchoOfOneLine, Output, Prompt, Unmarked};
        let (region, mark) = match (told, self.region) {
            (Told::PromptStart, Unmarked | Echo | EchoOfOneLine | Output | Between) => {
                (Prompt, Mark::PromptStart)
            }
            (Told::PromptEnd(echo), Prompt) => (echo, Mark::PromptEnd),
            // A prompt whose end is missing was replaced by hand; the command tells that it is over.
            (Told::CommandStart, Prompt | Echo | EchoOfOneLine) => (Output, Mark::CommandStart),
            (Told::CommandEnd(status), Echo | EchoOfOneLine | Output) => {
                (Between, Mark::CommandEnd { status })
            }
            _ => return,
        };
        self.region = region;
        each(Piece::Mark(mark));
    }

    fn hand_out(&mut self, bytes: &[u8], each: &mut impl FnMut(Piece<'_>)) {
        if bytes.is_empty() {
            return;
        }
        match self.region {
            Region::Prompt => each(Piece::Prompt(bytes)),
            Region::Echo => each(Piece::Echo(bytes)),
            Region::EchoOfOneLine => match memchr(b'\n', bytes) {
                None => each(Piece::Echo(bytes)),
                Some(newline) => {
                    let (line, rest) = bytes.split_at(newline + 1);
                    each(Piece::Echo(line));
                    self.pass(Told::CommandStart, each);
                    self.hand_out(rest, each);
                }
            },
            Region::Unmarked | Region::Output | Region::Between => each(Piece::Output(bytes)),
        }
    }
}

/// What begins with an introducer.
enum Sequence {
    Ours(Told, usize),
    Unfinished,
    Other,
}

/// What a mark of ours says.
#[derive(Clone, Copy)]
enum Told {
    PromptStart,
    PromptEnd(Region),
    CommandStart,
    CommandEnd(Option<i32>),
}

/// Where the bytes go on after two things in a row.
fn after(bytes: &[u8], first: &[u8], second: &[u8]) -> Option<usize> {
    let rest = bytes.strip_prefix(first)?.strip_prefix(second)?;
    Some(bytes.len() - rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What was read, with neighbours of a kind joined.
    #[derive(Debug, Default, PartialEq, Eq)]
    struct Parts(Vec<(char, Vec<u8>)>);

    impl Parts {
        fn add(&mut self, piece: Piece<'_>) {
            let (kind, bytes) = match piece {
                Piece::Output(bytes) => ('o', bytes.to_vec()),
                Piece::Prompt(bytes) => ('p', bytes.to_vec()),
                Piece::Echo(bytes) => ('e', bytes.to_vec()),
                Piece::Mark(mark) => ('m', format!("{mark:?}").into_bytes()),
            };
            match self.0.last_mut() {
                Some((last, all)) if *last == kind && kind != 'm' => all.extend(bytes),
                _ => self.0.push((kind, bytes)),
            }
        }

        fn text(&self) -> String {
            let parts = self.0.iter().map(|(kind, bytes)| {
                format!("{kind}:{}", String::from_utf8_lossy(bytes).escape_debug())
            });
            parts.collect::<Vec<_>>().join(" ")
        }
    }

    fn parts(chunks: &[&[u8]]) -> Parts {
        let mut marks = Marks::new("N1");
        let mut parts = Parts::default();
        for chunk in chunks {
            marks.read(chunk, |piece| parts.add(piece));
        }
        marks.finish(|piece| parts.add(piece));
        parts
    }

    /// The text of marks written as `<A>`, `<B>`, `<C>`, `<D;0>`.
    fn marked(text: &str) -> Vec<u8> {
        text.replace('<', "\x1b]133;").replace('>', ";aid=N1\x07").into_bytes()
    }

    fn read(text: &str) -> String {
        parts(&[&marked(text)]).text()
    }

    #[test]
    fn a_round_is_taken_apart() {
        assert_eq!(
            read("hello\r\n<D;0><A>$ <B>echo hi\r\n<C>hi\r\n<D;7><A>$ <B>"),
            "o:hello\\r\\n m:PromptStart p:$  m:PromptEnd e:echo hi\\r\\n m:CommandStart \
             o:hi\\r\\n m:CommandEnd { status: Some(7) } m:PromptStart p:$  m:PromptEnd"
        );
    }

    #[test]
    fn an_empty_line_and_a_line_given_up_run_nothing() {
        assert_eq!(
            read("<A>$ <B>\r\n<D;0><A>$ <B>ab^C\r\n<A>$ <B>"),
            "m:PromptStart p:$  m:PromptEnd e:\\r\\n m:CommandEnd { status: Some(0) } \
             m:PromptStart p:$  m:PromptEnd e:ab^C\\r\\n m:PromptStart p:$  m:PromptEnd"
        );
    }

    #[test]
    fn a_prompt_drawn_again_is_echo() {
        assert_eq!(read("<A>$ <B>l\r$ <B>ls"), "m:PromptStart p:$  m:PromptEnd e:l\\r$ ls");
    }

    #[test]
    fn a_command_that_prints_a_prompt_ends_nothing() {
        assert_eq!(
            read("<A>$ <B>x\r\n<C>a<B>b<C>c<D;1>"),
            "m:PromptStart p:$  m:PromptEnd e:x\\r\\n m:CommandStart o:abc \
             m:CommandEnd { status: Some(1) }"
        );
    }

    #[test]
    fn a_shell_without_a_mark_for_the_start_has_one_line_of_echo() {
        assert_eq!(
            read("<A>$ <B;echo=line>ls\r\na\r\nb\r\n<D;0><A>"),
            "m:PromptStart p:$  m:PromptEnd e:ls\\r\\n m:CommandStart o:a\\r\\nb\\r\\n \
             m:CommandEnd { status: Some(0) } m:PromptStart"
        );
    }

    #[test]
    fn marks_of_others_stay_where_they_are() {
        for other in [
            "\x1b]133;A\x07",
            "\x1b]133;A;aid=N2\x07",
            "\x1b]133;A;aid=N11\x1b\\",
            "\x1b]0;title\x07",
            "\x1b]133;Z;aid=N1\x07",
            "\x1b]133;A;aid=N1\n\x07",
            "\x1b]133;A;aid=N1\x1b[m",
            "\u{201d}\u{9d}\x1b",
        ] {
            assert_eq!(parts(&[other.as_bytes()]).0, [('o', other.as_bytes().to_vec())]);
        }
    }

    #[test]
    fn every_way_to_write_a_sequence_is_known() {
        for open in [&b"\x1b]"[..], b"\x9d", b"\xc2\x9d"] {
            for close in [&b"\x07"[..], b"\x1b\\", b"\x9c", b"\xc2\x9c"] {
                let mark = [b"a".as_slice(), open, b"133;A;aid=N1", close, b"b"].concat();
                assert_eq!(parts(&[&mark]).text(), "o:a m:PromptStart p:b");
            }
        }
    }

    #[test]
    fn a_sequence_without_an_end_is_bounded_and_becomes_output() {
        let mut marks = Marks::new("N1");
        let mut out = Vec::new();
        for byte in b"\x1b]133;A;aid=N1;".iter().chain(std::iter::repeat_n(&b'x', 10_000)) {
            marks.read(&[*byte], |piece| match piece {
                Piece::Output(bytes) => out.extend_from_slice(bytes),
                other => panic!("{other:?}"),
            });
            assert!(marks.held.len() < 100);
        }
        assert_eq!(out.len(), 10_015);
        assert!(!marks.seen());
    }

    #[test]
    fn it_knows_whether_the_shell_waits() {
        let mut marks = Marks::new("N1");
        for (text, waits) in
            [("hi", false), ("<A>", false), ("$ <B>", true), ("ls\n", true), ("<C>", false)]
        {
            marks.read(&marked(text), |_| ());
            assert_eq!((marks.at_prompt(), marks.seen()), (waits, text != "hi"), "{text}");
        }
    }

    fn token() -> impl Strategy<Value = Vec<u8>> {
        let marks = ["<A>", "<B>", "<C>", "<D;3>", "<B;echo=line>", "\x1b]133;A;aid=N2\x07"];
        let bits =
            ["\x1b", "]133;", "A;aid=N1", "\x07", "\u{9d}133;C;aid=N1\u{9c}", "\n", "\u{201d}"];
        prop_oneof![
            prop::sample::select(marks.to_vec()).prop_map(marked),
            prop::sample::select(bits.to_vec()).prop_map(|bit| bit.as_bytes().to_vec()),
            prop::collection::vec(any::<u8>(), 0..6),
        ]
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_the_bytes_are_split(
            tokens in prop::collection::vec(token(), 0..24),
            cuts in prop::collection::vec(1_usize..9, 1..40),
        ) {
            let bytes = tokens.concat();
            let mut chunks = Vec::new();
            let mut rest = &bytes[..];
            for cut in cuts.iter().cycle() {
                let (chunk, after) = rest.split_at((*cut).min(rest.len()));
                chunks.push(chunk);
                rest = after;
                if rest.is_empty() { break; }
            }
            prop_assert_eq!(parts(&chunks).text(), parts(&[&bytes]).text());
        }

        #[test]
        fn without_a_mark_of_ours_every_byte_comes_out(bytes in any::<Vec<u8>>()) {
            let mut out = Vec::new();
            for (kind, part) in parts(&[&bytes]).0 {
                prop_assert_eq!(kind, 'o');
                out.extend(part);
            }
            prop_assert_eq!(out, bytes);
        }
    }
}
