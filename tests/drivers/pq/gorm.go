package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

// Owner and the others are the models of the checks below.
type Owner struct {
	ID       uint   `gorm:"primaryKey"`
	Name     string `gorm:"size:40;not null;uniqueIndex"`
	Accounts []Account
}

// Account belongs to an owner and has labels.
type Account struct {
	gorm.Model
	OwnerID uint    `gorm:"not null;index"`
	Balance float64 `gorm:"type:numeric(14,2);default:0;check:balance >= 0"`
	Detail  string  `gorm:"type:jsonb;default:'{}'"`
	Labels  []Label `gorm:"many2many:account_labels;constraint:OnDelete:CASCADE"`
}

// Label is given to accounts.
type Label struct {
	ID   uint `gorm:"primaryKey"`
	Text string
}

// AccountWithNote is a later form of Account's table.
type AccountWithNote struct {
	Account
	Note string `gorm:"size:100;index"`
}

// TableName is that of the earlier form.
func (AccountWithNote) TableName() string { return "accounts" }

var ofGORM = []check{
	{"GORM migrates up, and sees what there is", ormMigrates},
	{"GORM saves, finds, changes and deletes", ormWorks},
	{"GORM upserts and runs in batches", ormUpserts},
	{"GORM nests transactions and takes locks", ormTransactions},
	{"GORM tells errors by their kind", ormErrors},
	{"GORM migrates down", ormMigratesDown},
}

func orm(ctx context.Context) *gorm.DB {
	config := gorm.Config{Logger: logger.Discard, TranslateError: true}
	database, err := gorm.Open(postgres.Open(with("")), &config)
	must(err)
	return database.WithContext(ctx)
}

func closed(database *gorm.DB) {
	under, err := database.DB()
	must(err)
	must(under.Close())
}

func ormMigrates(ctx context.Context) {
	database := orm(ctx)
	defer closed(database)
	must(database.AutoMigrate(&Owner{}, &Label{}, &Account{}))
	// There is nothing left to do for the second one.
	must(database.AutoMigrate(&Owner{}, &Label{}, &Account{}))
	must(database.AutoMigrate(&AccountWithNote{}))
	migrator := database.Migrator()
	equal(migrator.HasTable("account_labels"), true)
	equal(migrator.HasColumn(&AccountWithNote{}, "note"), true)
	equal(migrator.HasIndex(&AccountWithNote{}, "idx_accounts_note"), true)
	equal(migrator.HasConstraint(&Account{}, "fk_owners_accounts"), true)
	kinds, err := migrator.ColumnTypes(&Owner{})
	must(err)
	length, _ := kinds[1].Length()
	nullable, _ := kinds[1].Nullable()
	equal(fmt.Sprint(kinds[1].Name(), kinds[1].DatabaseTypeName(), length, nullable), "namevarchar40 false")
	tables, err := migrator.GetTables()
	must(err)
	equal(len(tables) >= 4, true)
	indexes, err := migrator.GetIndexes(&Account{})
	must(err)
	equal(len(indexes) >= 3, true)
}

func ormWorks(ctx context.Context) {
	database := orm(ctx)
	defer closed(database)
	owner := Owner{Name: "ann", Accounts: []Account{
		{Balance: 10.5, Detail: `{"k": 1}`, Labels: []Label{{Text: "x"}, {Text: "y"}}},
		{Balance: 20},
	}}
	must(database.Create(&owner).Error)
	var found Owner
	must(database.Preload("Accounts.Labels").Preload("Accounts", func(db *gorm.DB) *gorm.DB { return db.Order("id") }).
		First(&found, "name = ?", "ann").Error)
	equal([]int{len(found.Accounts), len(found.Accounts[0].Labels)}, []int{2, 2})
	equal(found.Accounts[0].Balance, 10.5)
	done := database.Model(&Account{}).Where("detail ->> 'k' = ?", "1").Update("balance", gorm.Expr("balance * ?", 2))
	must(done.Error)
	equal(done.RowsAffected, int64(1))
	var sums []struct {
		OwnerID uint
		Sum     float64
	}
	must(database.Model(&Account{}).Select("owner_id, sum(balance) AS sum").Group("owner_id").Having("sum(balance) > ?", 1).Scan(&sums).Error)
	equal(sums[0].Sum, 41.0)
	// A soft deletion hides the row.
	must(database.Delete(&Account{}, found.Accounts[1].ID).Error)
	var count int64
	must(database.Model(&Account{}).Count(&count).Error)
	equal(count, int64(1))
	must(database.Unscoped().Model(&Account{}).Count(&count).Error)
	equal(count, int64(2))
	must(database.Exec("DELETE FROM account_labels; DELETE FROM accounts; DELETE FROM owners").Error)
}

func ormUpserts(ctx context.Context) {
	database := orm(ctx)
	defer closed(database)
	owners := make([]Owner, 500)
	for at := range owners {
		owners[at].Name = fmt.Sprint("o", at)
	}
	must(database.CreateInBatches(owners, 100).Error)
	again := []Owner{{Name: "o1"}, {Name: "new"}}
	onName := []clause.Column{{Name: "name"}}
	must(database.Clauses(clause.OnConflict{Columns: onName, DoUpdates: clause.AssignmentColumns([]string{"name"})}).Create(&again).Error)
	equal(again[0].ID, owners[1].ID)
	skipped := database.Clauses(clause.OnConflict{DoNothing: true}).Create(&Owner{Name: "o2"})
	must(skipped.Error)
	equal(skipped.RowsAffected, int64(0))
	seen := 0
	var batch []Owner
	must(database.FindInBatches(&batch, 200, func(*gorm.DB, int) error {
		seen += len(batch)
		return nil
	}).Error)
	equal(seen, 501)
	returned := []Owner{}
	must(database.Clauses(clause.Returning{}).Where("name LIKE ?", "o4%").Delete(&returned).Error)
	equal(len(returned), 111)
	must(database.Session(&gorm.Session{AllowGlobalUpdate: true}).Delete(&Owner{}).Error)
}

func ormTransactions(ctx context.Context) {
	database := orm(ctx)
	defer closed(database)
	must(database.Transaction(func(outer *gorm.DB) error {
		must(outer.Create(&Owner{Name: "kept"}).Error)
		err := outer.Transaction(func(inner *gorm.DB) error {
			must(inner.Create(&Owner{Name: "gone"}).Error)
			return errors.New("changed my mind")
		})
		equal(err.Error(), "changed my mind")
		var owner Owner
		must(outer.Clauses(clause.Locking{Strength: "UPDATE"}).First(&owner, "name = ?", "kept").Error)
		return outer.Model(&owner).Update("name", "changed").Error
	}))
	var names []string
	must(database.Model(&Owner{}).Pluck("name", &names).Error)
	equal(names, []string{"changed"})
	must(database.Where("1 = 1").Delete(&Owner{}).Error)
}

func ormErrors(ctx context.Context) {
	database := orm(ctx)
	defer closed(database)
	must(database.Create(&Owner{Name: "once"}).Error)
	equal(errors.Is(database.Create(&Owner{Name: "once"}).Error, gorm.ErrDuplicatedKey), true)
	equal(errors.Is(database.Create(&Account{OwnerID: 999999}).Error, gorm.ErrForeignKeyViolated), true)
	equal(errors.Is(database.First(&Owner{}, 999999).Error, gorm.ErrRecordNotFound), true)
	refusedAs[refusal]("42P01", database.Exec("SELECT * FROM nowhere").Error)
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	err := database.WithContext(short).Exec("SELECT pg_sleep(20)").Error
	equal(err != nil && strings.Contains(err.Error(), "timeout"), true)
	must(database.Where("1 = 1").Delete(&Owner{}).Error)
}

func ormMigratesDown(ctx context.Context) {
	database := orm(ctx)
	defer closed(database)
	migrator := database.Migrator()
	must(migrator.RenameColumn(&AccountWithNote{}, "note", "remark"))
	must(migrator.DropColumn(&AccountWithNote{}, "remark"))
	must(migrator.DropConstraint(&Account{}, "fk_owners_accounts"))
	must(migrator.DropIndex(&Owner{}, "idx_owners_name"))
	must(migrator.DropTable("account_labels", &Account{}, &Label{}, &Owner{}))
	equal(migrator.HasTable(&Owner{}), false)
}
