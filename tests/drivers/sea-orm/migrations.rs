//! What the shop's tables are made with: SeaORM's builder, entities, and plain SQL.

use sea_orm::{ActiveEnum, ConnectionTrait, EntityName, Schema};
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{
    array, big_integer, decimal_len, enumeration, integer, json_binary_null, pk_auto, string, text,
    text_null, timestamp_with_time_zone, uuid,
};

use crate::entities::{Mood, value};

pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![Box::new(Shop), Box::new(Values), Box::new(Routines), Box::new(More)]
    }
}

struct Shop;

impl MigrationName for Shop {
    fn name(&self) -> &str {
        "m20240101_000001_shop"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Shop {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let schema = Schema::new(manager.get_database_backend());
        manager.create_type(schema.create_enum_from_active_enum::<Mood>().expect("it is an enum")).await?;
        let owner = Table::create()
            .table("owner")
            .col(big_integer("id").auto_increment().primary_key())
            .col(text("name"))
            .index(Index::create().unique().name("owner_name_once").col("name"))
            .to_owned();
        manager.create_table(owner).await?;
        let account = Table::create()
            .table("account")
            .col(pk_auto("id"))
            .col(big_integer("owner_id"))
            .col(uuid("key").default(Expr::cust("gen_random_uuid()")))
            .col(decimal_len("balance", 14, 2).default(0))
            .col(enumeration("mood", "mood", ["sad", "ok", "happy"]).default(Expr::cust("'ok'::mood")))
            .col(array("tags", ColumnType::Text).default(Expr::cust("'{}'::text[]")))
            .col(json_binary_null("detail"))
            .col(timestamp_with_time_zone("opened").default(Expr::current_timestamp()))
            .foreign_key(
                ForeignKey::create()
                    .name("account_owner_id_fkey")
                    .from("account", "owner_id")
                    .to("owner", "id")
                    .on_delete(ForeignKeyAction::Restrict),
            )
            .check(Expr::cust("balance >= 0"))
            .to_owned();
        manager.create_table(account).await?;
        let index = Index::create().name("account_owner").table("account").col("owner_id").to_owned();
        manager.create_index(index).await?;
        let item =
            Table::create().table("item").col(integer("id").primary_key()).col(text_null("label")).to_owned();
        manager.create_table(item).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["item", "account", "owner"] {
            manager.drop_table(Table::drop().table(table).to_owned()).await?;
        }
        manager.drop_type(extension::postgres::Type::drop().name(Mood::name()).to_owned()).await
    }
}

struct Values;

impl MigrationName for Values {
    fn name(&self) -> &str {
        "m20240102_000001_values"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Values {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let schema = Schema::new(manager.get_database_backend());
        manager.create_table(schema.create_table_from_entity(value::Entity)).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(value::Entity.table_ref()).to_owned()).await
    }
}

struct Routines;

impl MigrationName for Routines {
    fn name(&self) -> &str {
        "m20240103_000001_routines"
    }
}

const UP: &str = include_str!("../sqlx/migrations/20240102000000_routines.up.sql");
const DOWN: &str = include_str!("../sqlx/migrations/20240102000000_routines.down.sql");

#[async_trait::async_trait]
impl MigrationTrait for Routines {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.get_connection().execute_unprepared(UP).await.map(|_| ())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.get_connection().execute_unprepared(DOWN).await.map(|_| ())
    }
}

struct More;

impl MigrationName for More {
    fn name(&self) -> &str {
        "m20240104_000001_more"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for More {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let item = || Table::alter().table("item").to_owned();
        manager.alter_table(item().add_column_if_not_exists(string("more").default("x")).to_owned()).await?;
        manager.alter_table(item().modify_column(text("more").null()).to_owned()).await?;
        manager.alter_table(item().rename_column("more", "other").to_owned()).await?;
        let has = manager.has_column("item", "other").await? && !manager.has_column("item", "more").await?;
        let index =
            Index::create().unique().name("item_other").table("item").col("other").col("id").to_owned();
        manager.create_index(index).await?;
        if !has || !manager.has_index("item", "item_other").await? || !manager.has_table("item").await? {
            return Err(DbErr::Custom("the catalogs tell of other columns and indexes".to_owned()));
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_index(Index::drop().name("item_other").table("item").to_owned()).await?;
        manager.alter_table(Table::alter().table("item").drop_column("other").to_owned()).await
    }
}
