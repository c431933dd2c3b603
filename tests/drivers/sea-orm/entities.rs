//! The entities of a shop.

use sea_orm::entity::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "Enum", enum_name = "mood")]
pub enum Mood {
    #[sea_orm(string_value = "sad")]
    Sad,
    #[sea_orm(string_value = "ok")]
    Ok,
    #[sea_orm(string_value = "happy")]
    Happy,
}

pub mod owner {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "owner")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i64,
        #[sea_orm(unique)]
        pub name: String,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {
        #[sea_orm(has_many = "super::account::Entity")]
        Account,
    }

    impl Related<super::account::Entity> for Entity {
        fn to() -> RelationDef {
            Relation::Account.def()
        }
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub mod account {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "account")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i32,
        pub owner_id: i64,
        pub key: Uuid,
        #[sea_orm(column_type = "Decimal(Some((14, 2)))")]
        pub balance: Decimal,
        pub mood: super::Mood,
        pub tags: Vec<String>,
        #[sea_orm(column_type = "JsonBinary", nullable)]
        pub detail: Option<Json>,
        pub opened: TimeDateTimeWithTimeZone,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {
        #[sea_orm(
            belongs_to = "super::owner::Entity",
            from = "Column::OwnerId",
            to = "super::owner::Column::Id"
        )]
        Owner,
    }

    impl Related<super::owner::Entity> for Entity {
        fn to() -> RelationDef {
            Relation::Owner.def()
        }
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub mod item {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "item")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: i32,
        pub label: Option<String>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

pub mod value {
    use sea_orm::entity::prelude::*;

    /// A column of every type.
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "value")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: i32,
        pub truth: bool,
        pub small: i16,
        pub large: i64,
        pub single: f32,
        pub double: f64,
        #[sea_orm(column_type = "Decimal(Some((28, 8)))")]
        pub amount: Decimal,
        #[sea_orm(column_type = "Char(Some(4))")]
        pub code: String,
        #[sea_orm(column_type = "Text")]
        pub words: String,
        pub bytes: Vec<u8>,
        pub day: TimeDate,
        pub hour: TimeTime,
        pub moment: TimeDateTime,
        pub instant: TimeDateTimeWithTimeZone,
        pub key: Uuid,
        pub json: Json,
        #[sea_orm(column_type = "JsonBinary")]
        pub jsonb: Json,
        pub numbers: Vec<i32>,
        pub labels: Option<Vec<String>>,
        pub moods: Vec<super::Mood>,
        pub mood: Option<super::Mood>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}
