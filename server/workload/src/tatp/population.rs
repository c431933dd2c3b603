//! TATP's initial population (section 2.2), as COPY streams over ranges of subscribers.

use crate::workload::CopyJob;

/// Subscribers per COPY stream.
const SLICE: i32 = 25_000;

/// Parents before children, so that foreign keys hold at every moment.
pub fn jobs(subscribers: i32) -> Vec<Vec<CopyJob>> {
    let slices = || {
        (1..=subscribers)
            .step_by(SLICE as usize)
            .map(move |first| (first, (first + SLICE - 1).min(subscribers)))
    };
    vec![
        slices().map(|(first, last)| subscriber(first, last)).collect(),
        slices()
            .flat_map(|(first, last)| [access_info(first, last), special_facility(first, last)])
            .collect(),
        slices().map(|(first, last)| call_forwarding(first, last)).collect(),
    ]
}

/// Rows of the children depend on the subscriber alone, so that any stream can derive them.
fn of_subscriber(table: u64, s_id: i32) -> fastrand::Rng {
    fastrand::Rng::with_seed((table << 40) ^ s_id as u64 ^ 0x7461_7470_0000_0000)
}

/// One to four distinct types out of four.
fn types(random: &mut fastrand::Rng) -> Vec<i16> {
    let mut all = [1i16, 2, 3, 4];
    random.shuffle(&mut all);
    let mut chosen = all[..random.usize(1..=4)].to_vec();
    chosen.sort_unstable();
    chosen
}

fn letters(random: &mut fastrand::Rng, count: usize) -> String {
    (0..count).map(|_| random.char('A'..='Z')).collect()
}

/// A stream whose rows are made a subscriber at a time; `rows` counts them beforehand.
fn stream(
    sql: &'static str,
    first: i32,
    last: i32,
    make: impl Fn(i32) -> Vec<String> + Send + 'static,
) -> CopyJob {
    let rows = (first..=last).map(|s_id| make(s_id).len() as u64).sum();
    let mut lines = (first..=last).flat_map(make);
    CopyJob {
        sql,
        rows,
        write: Box::new(move |_, out| {
            let line = lines.next().expect("rows were counted with the same generator");
            out.extend_from_slice(line.as_bytes());
        }),
    }
}

fn subscriber(first: i32, last: i32) -> CopyJob {
    CopyJob {
        sql: "COPY subscriber FROM STDIN",
        rows: (last - first + 1) as u64,
        write: Box::new(move |row, out| {
            let s_id = first + row as i32;
            let mut random = of_subscriber(1, s_id);
            put!(out, "{s_id}\t{s_id:015}");
            for bound in [2i16, 16, 256] {
                for _ in 0..10 {
                    put!(out, "\t{}", random.i16(0..bound));
                }
            }
            put!(out, "\t{}\t{}\n", random.i32(0..), random.i32(0..));
        }),
    }
}

fn access_info(first: i32, last: i32) -> CopyJob {
    stream("COPY access_info FROM STDIN", first, last, |s_id| {
        let mut random = of_subscriber(2, s_id);
        types(&mut random)
            .into_iter()
            .map(|ai_type| {
                format!(
                    "{s_id}\t{ai_type}\t{}\t{}\t{}\t{}\n",
                    random.i16(0..256),
                    random.i16(0..256),
                    letters(&mut random, 3),
                    letters(&mut random, 5)
                )
            })
            .collect()
    })
}

fn special_facility(first: i32, last: i32) -> CopyJob {
    stream("COPY special_facility FROM STDIN", first, last, |s_id| {
        let mut random = of_subscriber(3, s_id);
        types(&mut random)
            .into_iter()
            .map(|sf_type| {
                format!(
                    "{s_id}\t{sf_type}\t{}\t{}\t{}\t{}\n",
                    i16::from(random.u8(..100) < 85),
                    random.i16(0..256),
                    random.i16(0..256),
                    letters(&mut random, 5)
                )
            })
            .collect()
    })
}

fn call_forwarding(first: i32, last: i32) -> CopyJob {
    stream("COPY call_forwarding FROM STDIN", first, last, |s_id| {
        let facilities = types(&mut of_subscriber(3, s_id));
        let mut random = of_subscriber(4, s_id);
        let mut lines = Vec::new();
        for sf_type in facilities {
            let mut starts = [0i16, 8, 16];
            random.shuffle(&mut starts);
            for start in &starts[..random.usize(0..=3)] {
                let number = random.u32(..1_000_000_000);
                lines.push(format!(
                    "{s_id}\t{sf_type}\t{start}\t{}\t{number:015}\n",
                    start + random.i16(1..=8)
                ));
            }
        }
        lines
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_forwarding_has_its_facility() {
        let text = |mut job: CopyJob| {
            let mut out = Vec::new();
            (0..job.rows).for_each(|row| (job.write)(row, &mut out));
            String::from_utf8(out).expect("populations are ASCII")
        };
        let key = |line: &str| line.split('\t').take(2).map(str::to_owned).collect::<Vec<_>>();
        let facilities: std::collections::HashSet<_> =
            text(special_facility(1, 500)).lines().map(key).collect();
        assert!(text(call_forwarding(1, 500)).lines().all(|line| facilities.contains(&key(line))));
    }
}
