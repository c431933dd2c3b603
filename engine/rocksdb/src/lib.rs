//! The RocksDB log store: `archipel_engine::log::LogStore` over one RocksDB directory.
