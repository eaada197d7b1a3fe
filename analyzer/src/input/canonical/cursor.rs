//! Walks along compact JSON: what a line may hold, in the one spelling that this
//! lane takes. Every method is `None` where the line has something else; the
//! cursor then stands anywhere, because the line is given up.

/// Deepest nesting of a value that is passed over.
pub(super) const DEPTH_MAX: u32 = 16;
/// Digits of a number that fits 64 bits whatever they are.
pub(super) const DIGITS_MAX: usize = 18;

/// A place in a line.
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Stands before the first byte.
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Whether all was read.
    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Passes over `byte` and the one space that some printers put behind it;
    /// whether it was there.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let found = self.expect(byte).is_some();
        if found && self.peek() == Some(b' ') {
            self.at += 1;
        }
        found
    }

    /// Text without escapes.
    pub(super) fn string(&mut self) -> Option<&'a str> {
        self.expect(b'"')?;
        let rest = self.text.as_bytes().get(self.at..)?;
        let length = rest
            .iter()
            .position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))?;
        if rest[length] != b'"' {
            return None;
        }
        let text = self.text.get(self.at..self.at + length)?;
        self.at += length + 1;
        Some(text)
    }

    /// An object, each field of which `field` reads.
    pub(super) fn object(
        &mut self,
        mut field: impl FnMut(&mut Self, &'a str) -> Option<()>,
    ) -> Option<()> {
        self.expect(b'{')?;
        if self.expect(b'}').is_some() {
            return Some(());
        }
        loop {
            let key = self.string()?;
            if !self.take(b':') {
                return None;
            }
            field(self, key)?;
            if !self.take(b',') {
                return self.expect(b'}');
            }
        }
    }

    /// A list, each element of which `element` reads.
    pub(super) fn list(&mut self, mut element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.expect(b'[')?;
        if self.expect(b']').is_some() {
            return Some(());
        }
        loop {
            element(self)?;
            if !self.take(b',') {
                return self.expect(b']');
            }
        }
    }

    /// An integer, as text or as number.
    pub(super) fn integer(&mut self) -> Option<i64> {
        let quoted = self.expect(b'"').is_some();
        let negative = self.expect(b'-').is_some();
        let digits = self.digits()?;
        let number = i64::try_from(number(digits)?).ok()?;
        if quoted {
            self.expect(b'"')?;
        } else if digits.len() > 1 && digits.starts_with('0') || negative && number == 0 {
            return None;
        }
        self.number_ends().then_some(())?;
        Some(if negative { -number } else { number })
    }

    /// Digits, at least one and no more than fit.
    pub(super) fn digits(&mut self) -> Option<&'a str> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let digits = self.text.get(self.at..self.at + length)?;
        self.at += length;
        (1..=DIGITS_MAX).contains(&length).then_some(digits)
    }

    /// A count without a sign.
    pub(super) fn count(&mut self) -> Option<()> {
        let digits = self.digits()?;
        let plain = digits.len() == 1 || !digits.starts_with('0');
        (plain && self.number_ends()).then_some(())
    }

    /// Whether what was read as an integer is not the beginning of a fraction.
    fn number_ends(&self) -> bool {
        !matches!(self.peek(), Some(b'.' | b'e' | b'E' | b'0'..=b'9'))
    }

    pub(super) fn truth(&mut self) -> Option<bool> {
        if self.word("true").is_some() {
            return Some(true);
        }
        self.word("false").map(|()| false)
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let found = self.text.get(self.at..)?.starts_with(word);
        found.then(|| self.at += word.len())
    }

    pub(super) fn double(&mut self) -> Option<f64> {
        let start = self.at;
        self.skip_number()?;
        let value: f64 = self.text.get(start..self.at)?.parse().ok()?;
        value.is_finite().then_some(value)
    }

    /// Passes over any value, no deeper than `depth`. Recursion is bounded.
    pub(super) fn skip(&mut self, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match self.peek()? {
            b'"' => self.string().map(|_| ()),
            b'{' => self.object(|cursor, _| cursor.skip(depth)),
            b'[' => self.list(|cursor| cursor.skip(depth)),
            b't' | b'f' => self.truth().map(|_| ()),
            b'n' => self.word("null"),
            _ => self.skip_number(),
        }
    }

    /// Passes over a number of the JSON grammar (RFC 8259, section 6).
    fn skip_number(&mut self) -> Option<()> {
        let _ = self.expect(b'-');
        let whole = self.some_digits()?;
        if whole > 1 && self.text.as_bytes()[self.at - whole] == b'0' {
            return None;
        }
        if self.expect(b'.').is_some() {
            self.some_digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits()?;
        }
        Some(())
    }

    /// Passes over digits; how many, at least one.
    fn some_digits(&mut self) -> Option<usize> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        (count > 0).then_some(count)
    }
}

/// The number of at most [`DIGITS_MAX`] digits.
fn number(digits: &str) -> Option<u64> {
    digits.parse().ok()
}
