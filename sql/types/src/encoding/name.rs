//! The names and numbers of PostgreSQL's character sets.

/// The character sets in the order of their numbers (pg_wchar.h): the name, how many bytes a character
/// takes at most, and other names as [`cleaned`] leaves them.
pub(super) const ENCODINGS: [(&str, i32, &[&str]); 42] = [
    ("SQL_ASCII", 1, &[]),
    ("EUC_JP", 3, &[]),
    ("EUC_CN", 3, &[]),
    ("EUC_KR", 3, &[]),
    ("EUC_TW", 4, &[]),
    ("EUC_JIS_2004", 3, &[]),
    ("UTF8", 4, &["unicode"]),
    ("MULE_INTERNAL", 4, &[]),
    ("LATIN1", 1, &["iso88591"]),
    ("LATIN2", 1, &["iso88592"]),
    ("LATIN3", 1, &["iso88593"]),
    ("LATIN4", 1, &["iso88594"]),
    ("LATIN5", 1, &["iso88599"]),
    ("LATIN6", 1, &["iso885910"]),
    ("LATIN7", 1, &["iso885913"]),
    ("LATIN8", 1, &["iso885914"]),
    ("LATIN9", 1, &["iso885915"]),
    ("LATIN10", 1, &["iso885916"]),
    ("WIN1256", 1, &["windows1256"]),
    ("WIN1258", 1, &["windows1258", "abc", "tcvn", "tcvn5712", "vscii"]),
    ("WIN866", 1, &["windows866", "alt"]),
    ("WIN874", 1, &["windows874"]),
    ("KOI8R", 1, &["koi8"]),
    ("WIN1251", 1, &["windows1251", "win"]),
    ("WIN1252", 1, &["windows1252"]),
    ("ISO_8859_5", 1, &[]),
    ("ISO_8859_6", 1, &[]),
    ("ISO_8859_7", 1, &[]),
    ("ISO_8859_8", 1, &[]),
    ("WIN1250", 1, &["windows1250"]),
    ("WIN1253", 1, &["windows1253"]),
    ("WIN1254", 1, &["windows1254"]),
    ("WIN1255", 1, &["windows1255"]),
    ("WIN1257", 1, &["windows1257"]),
    ("KOI8U", 1, &[]),
    ("SJIS", 2, &["mskanji", "shiftjis", "win932", "windows932"]),
    ("BIG5", 2, &["win950", "windows950"]),
    ("GBK", 2, &["win936", "windows936"]),
    ("UHC", 2, &["win949", "windows949"]),
    ("GB18030", 4, &[]),
    ("JOHAB", 3, &[]),
    ("SHIFT_JIS_2004", 2, &["shiftjis2004"]),
];

/// The last one that a server may keep its text in; those behind it are clients' alone.
const LAST_OF_SERVERS: i32 = 34;

/// A character set, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding(pub(super) i32);

/// [`Encoding::UTF8`].
impl Default for Encoding {
    fn default() -> Encoding {
        Encoding::UTF8
    }
}

impl Encoding {
    /// What is taken and given as it is.
    pub const SQL_ASCII: Encoding = Encoding(0);

    /// What all text here is.
    pub const UTF8: Encoding = Encoding(6);

    /// The one that has codes for all of Unicode beside UTF8.
    pub(super) const GB18030: Encoding = Encoding(39);

    /// The one with this number (`pg_database.encoding`).
    pub fn of_code(code: i32) -> Option<Encoding> {
        let known = usize::try_from(code).is_ok_and(|code| code < ENCODINGS.len());
        known.then_some(Encoding(code))
    }

    /// The one with this name, however it is spelled: case and what is neither a letter nor a digit do
    /// not count (pg_char_to_encoding).
    pub fn named(name: &str) -> Option<Encoding> {
        let told = ENCODINGS.iter().position(|(known, ..)| *known == name);
        let code = told.or_else(|| {
            let name = cleaned(name);
            ENCODINGS
                .iter()
                .position(|(known, _, others)| cleaned(known) == name || others.contains(&name.as_str()))
        });
        i32::try_from(code?).ok().map(Encoding)
    }

    /// Its number.
    pub fn code(self) -> i32 {
        self.0
    }

    fn entry(self) -> &'static (&'static str, i32, &'static [&'static str]) {
        &ENCODINGS[self.0 as usize]
    }

    /// Its name as PostgreSQL tells it.
    pub fn name(self) -> &'static str {
        self.entry().0
    }

    /// How many bytes a character takes at most.
    pub fn character_bytes_max(self) -> i32 {
        self.entry().1
    }

    /// Whether its clients get text as the server has it: of UTF8 and SQL_ASCII.
    #[inline]
    pub fn is_servers(self) -> bool {
        self == Encoding::UTF8 || self == Encoding::SQL_ASCII
    }

    /// Whether a database of PostgreSQL may have it.
    pub fn is_of_servers(self) -> bool {
        self.0 <= LAST_OF_SERVERS
    }
}

/// A name without what does not count in it.
fn cleaned(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf8_is_found_in_all_its_spellings() {
        for name in ["UTF8", "utf-8", "Utf_8", "unicode", " u t f 8"] {
            assert_eq!(Encoding::named(name), Some(Encoding::UTF8), "{name}");
        }
        for name in ["", "utf", "utf16", "ascii", "utf88"] {
            assert_eq!(Encoding::named(name), None, "{name}");
        }
    }

    #[test]
    fn numbers_and_names_lead_to_each_other() {
        for code in 0..ENCODINGS.len() as i32 {
            let encoding = Encoding::of_code(code).unwrap();
            assert_eq!(Encoding::named(encoding.name()), Some(encoding));
            assert_eq!(encoding.code(), code);
        }
        assert_eq!(Encoding::of_code(-1), None);
        assert_eq!(Encoding::of_code(42), None);
        assert_eq!(Encoding::named("iso-8859-15").map(Encoding::name), Some("LATIN9"));
    }

    #[test]
    fn servers_have_none_of_the_clients_alone() {
        assert!(Encoding::named("koi8u").unwrap().is_of_servers());
        assert!(!Encoding::named("sjis").unwrap().is_of_servers());
    }
}
