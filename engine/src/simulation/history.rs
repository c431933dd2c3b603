//! What clients have seen, and whether one serial order explains it.
//!
//! Every transfer appends its number to the lists of both its accounts and reads them whole.
//! So the lists say in which order transactions wrote each account, and the length of a list
//! that somebody read says between which two writers the reader stands. Together with real time
//! (what had ended before something else began comes before it) these are the edges of a graph;
//! an order that explains everything exists exactly if the graph has no cycle. This is the idea
//! of Elle's list-append check (Kingsbury and Alvaro, VLDB 2020).

use std::collections::{BTreeMap, BTreeSet};

use super::ACCOUNTS_COUNT;

/// Account balances and lists, as one transaction or one recovery saw them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whole {
    pub balances: BTreeMap<i64, i64>,
    pub lists: BTreeMap<i64, Vec<i64>>,
}

#[derive(Clone, Copy, Debug)]
struct Transfer {
    from: i64,
    to: i64,
    amount: i64,
}

/// A committed transaction, from its submission to the moment its end was known.
struct Node {
    start: u64,
    end: u64,
}

/// A list that a transaction read: the account and how long the list was.
type Seen = (usize, i64, usize);

#[derive(Default)]
pub struct History {
    transfers: BTreeMap<i64, Transfer>,
    /// Per account: who wrote it, in order, as far as anybody saw.
    orders: BTreeMap<i64, Vec<i64>>,
    /// So much of each order is from before the last crash, and has no nodes.
    old: BTreeMap<i64, usize>,
    nodes: Vec<Node>,
    writers: BTreeMap<i64, usize>,
    seen: Vec<Seen>,
    /// Transfers that were undone: nobody may ever see them.
    undone: BTreeSet<i64>,
}

type Checked = Result<(), String>;

impl History {
    pub fn submitted(&mut self, id: i64, from: i64, to: i64, amount: i64) {
        self.transfers.insert(id, Transfer { from, to, amount });
    }

    /// Whether a transfer takes from this account.
    pub fn is_from(&self, id: i64, account: i64) -> bool {
        self.transfers.get(&id).is_some_and(|transfer| transfer.from == account)
    }

    pub fn undone(&mut self, id: i64) {
        self.undone.insert(id);
    }

    /// A list as somebody committed saw it: the lists of one account are prefixes of one order.
    fn observe(&mut self, account: i64, list: &[i64]) -> Checked {
        let order = self.orders.entry(account).or_default();
        let common = order.len().min(list.len());
        if order[..common] != list[..common] {
            return Err(format!(
                "account {account} was written in the order {order:?}, and in the order {list:?}"
            ));
        }
        if list.len() > order.len() {
            order.extend_from_slice(&list[common..]);
        }
        Ok(())
    }

    /// A transaction that committed these transfers, having read these lists before.
    pub fn committed(&mut self, start: u64, end: u64, ids: &[i64], lists: &[(i64, Vec<i64>)]) -> Checked {
        let node = self.nodes.len();
        self.nodes.push(Node { start, end });
        for id in ids {
            self.writers.insert(*id, node);
        }
        for (account, list) in lists {
            self.observe(*account, list)?;
            self.seen.push((node, *account, list.len()));
        }
        Ok(())
    }

    /// A transaction that read everything.
    pub fn read(&mut self, start: u64, end: u64, whole: &Whole) -> Checked {
        self.check_whole(whole)?;
        let lists: Vec<_> = whole.lists.iter().map(|(account, list)| (*account, list.clone())).collect();
        self.committed(start, end, &[], &lists)
    }

    /// All or nothing of every transfer, and balances that are the sum of just these.
    pub fn check_whole(&self, whole: &Whole) -> Checked {
        let accounts = 0..ACCOUNTS_COUNT;
        if !whole.balances.keys().copied().eq(accounts.clone()) || !whole.lists.keys().copied().eq(accounts) {
            return Err(format!("accounts are missing, or too many: {:?}", whole.balances.keys()));
        }
        let mut sides: BTreeMap<i64, usize> = BTreeMap::new();
        for (account, list) in &whole.lists {
            let mut balance = 100;
            for id in list {
                let Some(transfer) = self.transfers.get(id) else {
                    return Err(format!("nobody submitted transfer {id}"));
                };
                if self.undone.contains(id) {
                    return Err(format!("transfer {id} was undone and is there"));
                }
                match *account {
                    account if account == transfer.from => balance -= transfer.amount,
                    account if account == transfer.to => balance += transfer.amount,
                    _ => return Err(format!("transfer {id} is in the list of account {account}")),
                }
                *sides.entry(*id).or_default() += 1;
            }
            if whole.balances[account] != balance {
                return Err(format!(
                    "account {account} has {}, its transfers make {balance}",
                    whole.balances[account]
                ));
            }
        }
        match sides.iter().find(|(_, count)| **count != 2) {
            Some((id, 1)) => Err(format!("half of transfer {id} is there")),
            Some((id, _)) => Err(format!("transfer {id} ran twice")),
            None => Ok(()),
        }
    }

    /// What a recovery found: every order is a continuation of it or continued by it.
    pub fn check_recovered(&self, whole: &Whole) -> Checked {
        self.check_whole(whole)?;
        for (account, list) in &whole.lists {
            let order = self.orders.get(account).map_or(&[][..], Vec::as_slice);
            let common = order.len().min(list.len());
            if order[..common] != list[..common] {
                return Err(format!("account {account} had {order:?} before the crash, and has {list:?}"));
            }
        }
        Ok(())
    }

    /// A new life begins with what was recovered.
    pub fn restart(&mut self, whole: &Whole) {
        self.orders = whole.lists.clone();
        self.old = whole.lists.iter().map(|(account, list)| (*account, list.len())).collect();
        self.nodes.clear();
        self.writers.clear();
        self.seen.clear();
    }

    /// Whether one serial order, in agreement with real time, explains what was seen.
    pub fn check_order(&self) -> Checked {
        let mut edges: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        let mut writers = self.writers.clone();
        let mut node_of = |id: i64, edges: &mut Vec<Vec<usize>>| {
            *writers.entry(id).or_insert_with(|| {
                // Committed, and nobody knows when: its client is gone.
                edges.push(Vec::new());
                edges.len() - 1
            })
        };
        for (account, order) in &self.orders {
            let old = self.old.get(account).copied().unwrap_or(0).min(order.len());
            for pair in order[old..].windows(2) {
                let (before, after) = (node_of(pair[0], &mut edges), node_of(pair[1], &mut edges));
                link(&mut edges, before, after);
            }
        }
        for &(reader, account, length) in &self.seen {
            let order = &self.orders[&account];
            let old = self.old.get(&account).copied().unwrap_or(0);
            if length > old {
                let writer = node_of(order[length - 1], &mut edges);
                link(&mut edges, writer, reader);
            }
            if let Some(&next) = order.get(length)
                && length >= old
            {
                let writer = node_of(next, &mut edges);
                link(&mut edges, reader, writer);
            }
        }
        self.link_real_time(&mut edges);
        acyclic(&edges)
    }

    /// A chain of moments: what ended comes before the next moment, and that before what began
    /// later.
    fn link_real_time(&self, edges: &mut Vec<Vec<usize>>) {
        let mut events: Vec<(u64, bool, usize)> = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            events.push((node.start, false, at));
            events.push((node.end, true, at));
        }
        events.sort_unstable();
        let mut moment = None;
        for (_, ends, node) in events {
            if ends {
                edges.push(Vec::new());
                let next = edges.len() - 1;
                edges[node].push(next);
                if let Some(moment) = moment.replace(next) {
                    edges[moment].push(next);
                }
            } else if let Some(moment) = moment {
                edges[moment].push(node);
            }
        }
    }
}

fn link(edges: &mut [Vec<usize>], before: usize, after: usize) {
    if before != after {
        edges[before].push(after);
    }
}

fn acyclic(edges: &[Vec<usize>]) -> Checked {
    let mut waits: Vec<usize> = vec![0; edges.len()];
    for after in edges.iter().flatten() {
        waits[*after] += 1;
    }
    let mut free: Vec<usize> = (0..edges.len()).filter(|&node| waits[node] == 0).collect();
    let mut ordered = 0;
    while let Some(node) = free.pop() {
        ordered += 1;
        for &after in &edges[node] {
            waits[after] -= 1;
            if waits[after] == 0 {
                free.push(after);
            }
        }
    }
    if ordered == edges.len() {
        Ok(())
    } else {
        Err(format!("no serial order explains what {} transactions saw", edges.len() - ordered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(transfers: &[(i64, i64, i64)]) -> History {
        let mut history = History::default();
        for &(id, from, to) in transfers {
            history.submitted(id, from, to, 1);
        }
        history
    }

    #[test]
    fn a_lost_update_has_no_serial_order() {
        let mut history = history(&[(1, 0, 1), (2, 0, 1)]);
        assert_eq!(history.committed(1, 4, &[1], &[(0, vec![]), (1, vec![])]), Ok(()));
        assert_eq!(history.committed(2, 3, &[2], &[(0, vec![]), (1, vec![])]), Ok(()));
        assert_eq!(history.observe(0, &[1, 2]), Ok(()));
        assert!(history.check_order().is_err(), "both saw the empty list");
    }

    #[test]
    fn write_skew_has_no_serial_order() {
        let mut history = history(&[(1, 0, 2), (2, 1, 3)]);
        assert_eq!(history.committed(1, 5, &[1], &[(0, vec![]), (1, vec![])]), Ok(()));
        assert_eq!(history.committed(2, 4, &[2], &[(0, vec![]), (1, vec![])]), Ok(()));
        assert_eq!(history.observe(0, &[1]), Ok(()));
        assert_eq!(history.check_order(), Ok(()));
        assert_eq!(history.observe(1, &[2]), Ok(()));
        assert!(history.check_order().is_err());
    }

    #[test]
    fn a_stale_read_contradicts_real_time() {
        let mut history = history(&[(1, 0, 1)]);
        assert_eq!(history.committed(1, 2, &[1], &[(0, vec![])]), Ok(()));
        assert_eq!(history.committed(3, 4, &[], &[(0, vec![])]), Ok(()));
        assert_eq!(history.observe(0, &[1]), Ok(()));
        assert!(history.check_order().is_err());
    }

    #[test]
    fn an_order_is_one_order() {
        let mut history = history(&[]);
        assert_eq!(history.observe(0, &[1, 2]), Ok(()));
        assert_eq!(history.observe(0, &[1]), Ok(()));
        assert!(history.observe(0, &[2]).is_err());
    }
}
