//! PostgreSQL collects the rows of some statements before it tells any: it tells none if one fails, and what was
//! said meanwhile comes before them.

use super::Output;

impl Output {
    /// Takes back descriptions and rows among the messages from byte `start` on, where a message begins. What
    /// else was said stays: notices, parameters, notifications.
    pub fn take_back_rows(&mut self, start: usize) {
        let (mut from, mut kept) = (start, start);
        while let Some((kind, end)) = message_at(&self.bytes, from) {
            if !matches!(kind, b'T' | b'D') {
                self.bytes.copy_within(from..end, kept);
                kept += end - from;
            }
            from = end;
        }
        self.bytes.truncate(kept);
    }

    /// How many notices there are among the messages from byte `start` on, where a message begins.
    pub fn notices_from(&self, start: usize) -> usize {
        let (mut from, mut count) = (start, 0);
        while let Some((kind, end)) = message_at(&self.bytes, from) {
            count += usize::from(kind == b'N');
            from = end;
        }
        count
    }

    /// Puts the notices among the messages from byte `start` on, where a message begins, before the others, but
    /// for the last `late` ones, which stay where they are.
    pub fn put_notices_first(&mut self, start: usize, late: usize) {
        let mut left = self.notices_from(start).saturating_sub(late);
        let mut others = Vec::new();
        let (mut from, mut kept) = (start, start);
        while let Some((kind, end)) = message_at(&self.bytes, from) {
            match kind {
                b'N' if left > 0 => {
                    self.bytes.copy_within(from..end, kept);
                    kept += end - from;
                    left -= 1;
                }
                _ => others.extend_from_slice(&self.bytes[from..end]),
            }
            from = end;
        }
        self.bytes.truncate(kept);
        self.bytes.extend_from_slice(&others);
    }
}

/// The message that begins at a byte: its kind, and where it ends.
fn message_at(bytes: &[u8], at: usize) -> Option<(u8, usize)> {
    let &[kind, a, b, c, d] = bytes.get(at..)?.first_chunk()?;
    // The length counts itself, and not the kind before it.
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    Some((kind, at.saturating_add(1 + length).min(bytes.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_row_stays() {
        let mut output = Output::new();
        output.command_complete("BEGIN");
        let start = output.len();
        output.put(b"T\0\0\0\x06\0\0D\0\0\0\x06\0\0");
        output.notification(258, "c", "xy").unwrap();
        output.put(b"D\0\0\0\x06\0\0");
        output.take_back_rows(start);
        assert_eq!(output.as_slice(), b"C\0\0\0\x0aBEGIN\0A\0\0\0\x0d\0\0\x01\x02c\0xy\0");
        output.take_back_rows(output.len());
        assert_eq!(output.len(), start + 14);
    }

    #[test]
    fn notices_come_first() {
        let mut output = Output::new();
        output.command_complete("BEGIN");
        let start = output.len();
        output.put(b"T\0\0\0\x06\0\0D\0\0\0\x06\0\0N\0\0\0\x05\0D\0\0\0\x06\0\x01N\0\0\0\x05\x01C\0\0\0\x04");
        output.put_notices_first(start, 0);
        let sorted =
            b"N\0\0\0\x05\0N\0\0\0\x05\x01T\0\0\0\x06\0\0D\0\0\0\x06\0\0D\0\0\0\x06\0\x01C\0\0\0\x04";
        assert_eq!(&output.as_slice()[start..], sorted);
    }

    #[test]
    fn late_notices_stay_behind_the_rows() {
        let mut output = Output::new();
        output.put(b"T\0\0\0\x06\0\0D\0\0\0\x06\0\0N\0\0\0\x05\0N\0\0\0\x05\x01C\0\0\0\x04");
        output.put_notices_first(0, 1);
        let sorted = b"N\0\0\0\x05\0T\0\0\0\x06\0\0D\0\0\0\x06\0\0N\0\0\0\x05\x01C\0\0\0\x04";
        assert_eq!(output.as_slice(), sorted);
    }
}
