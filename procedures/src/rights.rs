//! Rights, asked for once for each role and version of the catalog and not with every run.

use std::sync::atomic::{AtomicU64, Ordering};

use archipel_sql::catalog::Requirement;
use archipel_sql::error::Result;
use archipel_sql::function::SessionHost;

/// What a part of a compiled routine needs, and who was last found to have it.
#[derive(Debug)]
pub struct Rights {
    needed: Box<[Requirement]>,
    /// The [`SessionHost::authority`] that has it all; 0: nobody asked yet.
    held_by: AtomicU64,
}

impl Rights {
    /// `None` where nothing is needed.
    pub fn of(needed: Vec<Requirement>) -> Option<Rights> {
        (!needed.is_empty()).then(|| Rights { needed: needed.into(), held_by: AtomicU64::new(0) })
    }

    /// 42501 unless the session has them.
    pub fn check(&self, session: &dyn SessionHost) -> Result<()> {
        let authority = session.authority();
        // Of two sessions that store here at once either may win: both were found to have them.
        if authority != 0 && self.held_by.load(Ordering::Relaxed) == authority {
            return Ok(());
        }
        session.require(&self.needed)?;
        // 0 is whoever has no number: nothing is kept of it.
        if authority != 0 {
            self.held_by.store(authority, Ordering::Relaxed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use archipel_sql::catalog::{Privileges, Required};
    use archipel_sql::error::SqlState;
    use archipel_sql::function::NoSession;
    use archipel_sql::types::Oid;

    use super::*;

    /// Allows everything, and counts how often it is asked.
    struct Asked {
        authority: u64,
        times: AtomicU64,
    }

    impl SessionHost for Asked {
        fn authority(&self) -> u64 {
            self.authority
        }

        fn require(&self, _needed: &[Requirement]) -> Result<()> {
            self.times.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    fn rights() -> Rights {
        let what = Required::Routine(Oid(20_000));
        Rights::of(vec![Requirement { acting: None, what }]).expect("something is needed")
    }

    #[test]
    fn a_host_that_says_nothing_of_rights_allows_nothing() {
        let refused = rights().check(&NoSession).expect_err("nobody is asked");
        assert_eq!(refused.state(), SqlState::INSUFFICIENT_PRIVILEGE);
        assert!(NoSession.require_sequence(Oid(20_000), Privileges::USAGE).is_err());
        assert!(NoSession.as_owner_of(Oid(20_000), &[]).is_err());
    }

    #[test]
    fn whoever_has_no_number_is_asked_every_time() {
        let rights = rights();
        for (authority, times) in [(0, 3), (7, 1)] {
            let host = Asked { authority, times: AtomicU64::new(0) };
            for _ in 0..3 {
                rights.check(&host).expect("everything is allowed");
            }
            assert_eq!(host.times.load(Ordering::Relaxed), times);
        }
    }
}
