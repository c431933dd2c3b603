//! BASE_BACKUP: the database as an archive, in COPY data.

use archipel_sql::error::{Result, SqlError, SqlState};

use super::Session;
use crate::backup::stream::BackupStream;

impl Session {
    pub(super) async fn base_backup(&mut self) -> Result<()> {
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            SqlError::new(SqlState::IO_ERROR, format!("{what}: {error}"))
        };
        let engine = self.server.engine.clone();
        let directory = self.server.config.data_directory.clone();
        let opened = self.server.waiting.begin(move || BackupStream::open(&engine, &directory))?.await;
        let mut stream = match opened {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(failed("the backup failed", &error)),
            Err(error) => return Err(failed("the backup failed", &error)),
        };
        self.output.copy_out_response(0, false);
        loop {
            let next = move || {
                let chunk = stream.next_chunk();
                (stream, chunk)
            };
            let (rest, chunk) = match self.server.waiting.begin(next)?.await {
                Ok((rest, Ok(chunk))) => (rest, chunk),
                Ok((_, Err(error))) => return Err(failed("the backup could not be read", &error)),
                Err(error) => return Err(failed("the backup could not be read", &error)),
            };
            stream = rest;
            let Some(chunk) = chunk else { break };
            // Appending to a buffer cannot fail.
            let _ = self.output.copy_data(|bytes| {
                bytes.extend_from_slice(&chunk);
                Ok::<(), ()>(())
            });
            self.flush_part().await?;
            if self.entry().is_cancelled() {
                return Err(self.entry().cancel_error());
            }
        }
        self.output.copy_done();
        Ok(())
    }
}
