//! Rows that were not to be told: PostgreSQL collects those of some statements, and tells none if one fails.

use super::Output;

impl Output {
    /// Takes back descriptions and rows among the messages from byte `start` on, where a message begins. What
    /// else was said stays: notices, parameters, notifications.
    pub fn take_back_rows(&mut self, start: usize) {
        let (mut from, mut kept) = (start, start);
        while let Some(&[kind, a, b, c, d]) = self.bytes.get(from..).and_then(|rest| rest.first_chunk()) {
            // The length counts itself, and not the kind before it.
            let length = u32::from_be_bytes([a, b, c, d]) as usize;
            let end = from.saturating_add(1 + length).min(self.bytes.len());
            if !matches!(kind, b'T' | b'D') {
                self.bytes.copy_within(from..end, kept);
                kept += end - from;
            }
            from = end;
        }
        self.bytes.truncate(kept);
    }
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
}
