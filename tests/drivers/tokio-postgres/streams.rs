//! Rows that come or go as a stream: copy, portals and cursors.

use std::pin::pin;

use bytes::{Bytes, BytesMut};
use checks::{Outcome, equal};
use futures_util::{SinkExt, StreamExt, TryStreamExt, stream};
use time::{Date, Month};
use tokio_postgres::binary_copy::{BinaryCopyInWriter, BinaryCopyOutStream};
use tokio_postgres::types::Type;

use crate::client::{all, connect, one, refused, usable};

pub async fn copies() -> Outcome {
    let client = connect().await?;
    let sink = client.copy_in("COPY item FROM STDIN").await?;
    let mut sink = pin!(sink);
    let mut lines = stream::iter((0..3000).map(|n| Ok(Bytes::from(format!("{n}\tlabel {n}\n")))));
    sink.send_all(&mut lines).await?;
    equal(sink.finish().await?, 3000);
    let out = client
        .copy_out("COPY (SELECT * FROM item WHERE id < 2 ORDER BY id) TO STDOUT (FORMAT csv, HEADER)")
        .await?;
    let parts: Vec<_> = out.try_collect().await?;
    equal(String::from_utf8_lossy(&parts.concat()), "id,label\n0,label 0\n1,label 1\n");

    let sink = client.copy_in("COPY item FROM STDIN").await?;
    let mut sink = pin!(sink);
    sink.send(Bytes::from("x\ty\n")).await?;
    let said = refused("22P02", sink.finish().await);
    equal(said.where_(), Some("COPY item, line 1, column id: \"x\""));
    refused("42P01", client.copy_out("COPY nowhere TO STDOUT").await.map(|_| ()));
    // One that is dropped half way is given up, and adds nothing.
    {
        let sink = client.copy_in("COPY item FROM STDIN").await?;
        pin!(sink).send(Bytes::from("9999\tlost\n")).await?;
    }
    equal(client.execute("DELETE FROM item", &[]).await?, 3000);
    usable(&client).await
}

pub async fn packed() -> Outcome {
    let client = connect().await?;
    client
        .batch_execute(
            "CREATE TABLE packed (id int, day date, label text, amount float8, tags int[], mood mood)",
        )
        .await?;
    let mood = client.prepare("SELECT mood FROM packed").await?.columns()[0].type_().clone();
    let types = [Type::INT4, Type::DATE, Type::TEXT, Type::FLOAT8, Type::INT4_ARRAY, mood];
    let names = "id, day, label, amount, tags, mood";
    let leap = Date::from_calendar_date(2024, Month::February, 29)?;
    let writer = BinaryCopyInWriter::new(
        client.copy_in(&format!("COPY packed ({names}) FROM STDIN BINARY")).await?,
        &types,
    );
    let mut writer = pin!(writer);
    for n in 0..1000 {
        let label = (n % 2 == 0).then(|| format!("l{n}"));
        writer
            .as_mut()
            .write(&[&n, &leap, &label, &(f64::from(n) / 4.0), &vec![n, -n], &Mood("happy")])
            .await?;
    }
    equal(writer.finish().await?, 1000);
    equal(
        one::<i64>(&client, "SELECT count(*) FROM packed WHERE mood = 'happy' AND tags[2] = -id", &[])
            .await?,
        1000,
    );

    let out =
        client.copy_out(&format!("COPY (SELECT {names} FROM packed ORDER BY id) TO STDOUT BINARY")).await?;
    let rows: Vec<_> = pin!(BinaryCopyOutStream::new(out, &types)).try_collect().await?;
    equal(rows.len(), 1000);
    let last = &rows[999];
    equal((last.get::<i32>(0), last.get::<Date>(1), last.get::<Option<&str>>(2)), (999, leap, None));
    equal((last.get::<f64>(3), last.get::<Vec<i32>>(4)), (249.75, vec![999, -999]));
    equal(rows[998].get::<&str>(2), "l998");

    let sink = client.copy_in("COPY item FROM STDIN BINARY").await?;
    let mut sink = pin!(sink);
    sink.send(Bytes::from("1\ta\n")).await?;
    refused("22P04", sink.finish().await);
    client.batch_execute("DROP TABLE packed").await?;
    Ok(())
}

/// A label of an enum, which is text on the wire.
#[derive(Debug)]
struct Mood(&'static str);

impl tokio_postgres::types::ToSql for Mood {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<tokio_postgres::types::IsNull, Box<dyn std::error::Error + Sync + Send>> {
        self.0.to_sql(&Type::TEXT, out)
    }

    fn accepts(kind: &Type) -> bool {
        kind.name() == "mood"
    }

    tokio_postgres::types::to_sql_checked!();
}

pub async fn portals() -> Outcome {
    let mut client = connect().await?;
    let within = client.transaction().await?;
    let first = within.bind("SELECT n FROM generate_series(1, $1::int) AS n", &[&7]).await?;
    let second = within.bind("SELECT 'l' || n FROM generate_series(1, 3) AS n", &[]).await?;
    let mut taken: Vec<i32> = Vec::new();
    loop {
        let rows = within.query_portal(&first, 3).await?;
        let label = within.query_portal(&second, 1).await?;
        equal(label.len(), 1);
        taken.extend(rows.iter().map(|row| row.get::<_, i32>(0)));
        if rows.len() < 3 {
            break;
        }
    }
    equal(taken, (1..=7).collect::<Vec<i32>>());
    let writing =
        within.bind("INSERT INTO item SELECT n FROM generate_series(1, 5) AS n RETURNING id", &[]).await?;
    equal(within.query_portal(&writing, 2).await?.len(), 2);
    // All of its rows are there with its first ones.
    equal(one::<i64>(&within, "SELECT count(*) FROM item", &[]).await?, 5);
    equal(within.query_portal(&writing, 0).await?.len(), 3);
    within.rollback().await?;
    equal(one::<i64>(&client, "SELECT count(*) FROM item", &[]).await?, 0);
    Ok(())
}

pub async fn cursors() -> Outcome {
    let mut client = connect().await?;
    let within = client.transaction().await?;
    within.batch_execute("DECLARE c SCROLL CURSOR FOR SELECT n FROM generate_series(1, 100) AS n").await?;
    equal(all::<i32>(&within, "FETCH 3 FROM c", &[]).await?, vec![1, 2, 3]);
    equal(within.execute("MOVE 10 IN c", &[]).await?, 10);
    equal(all::<i32>(&within, "FETCH BACKWARD 2 FROM c", &[]).await?, vec![12, 11]);
    equal(all::<i32>(&within, "FETCH ABSOLUTE 50 FROM c", &[]).await?, vec![50]);
    within.batch_execute("CLOSE c").await?;
    within.rollback().await?;
    // Rows that are left unread do not harm what follows.
    {
        let none: [i32; 0] = [];
        let rows = client.query_raw("SELECT n FROM generate_series(1, 100000) AS n", none).await?;
        let first = pin!(rows).next().await.expect("there are rows")?;
        equal(first.get::<_, i32>(0), 1);
    }
    usable(&client).await
}
