"""What a table goes through in its life, each step of which can be undone; it ends as it began."""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


def fill(apps, schema_editor):
    item = apps.get_model("shop", "Item")
    item.objects.bulk_create(item(id=-n, title=f"n{n}") for n in range(1, 101))


def clear(apps, schema_editor):
    apps.get_model("shop", "Item").objects.filter(id__lt=0).delete()


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("shop", "0001_initial")]
    operations = [
        migrations.RenameField("item", "label", "title"),
        migrations.AlterField("item", "title", models.TextField(default="none")),
        migrations.AddField("item", "amount", models.PositiveIntegerField(default=7)),
        migrations.AddField("item", "seen", models.DateTimeField(null=True)),
        migrations.RunPython(fill, clear),
        migrations.AddConstraint("item", models.UniqueConstraint(fields=["title"], name="item_title_once")),
        AddIndexConcurrently("item", models.Index(fields=["amount", "-seen"], name="item_amount")),
        migrations.RenameIndex("item", new_name="item_amount_seen", old_name="item_amount"),
        migrations.AlterField("item", "amount", models.BigIntegerField(null=True)),
        migrations.RunSQL("UPDATE shop_item SET amount = amount * 2", "UPDATE shop_item SET amount = amount / 2"),
        migrations.RenameModel("Item", "Thing"),
        migrations.AlterModelTable("Thing", "things"),
        migrations.AlterModelTableComment("Thing", "it has been something else"),
        migrations.AlterModelTableComment("Thing", None),
        migrations.AlterModelTable("Thing", None),
        migrations.RenameModel("Thing", "Item"),
        RemoveIndexConcurrently("item", "item_amount_seen"),
        migrations.RemoveConstraint("item", "item_title_once"),
        migrations.RunPython(clear, migrations.RunPython.noop),
        migrations.RemoveField("item", "seen"),
        migrations.RemoveField("item", "amount"),
        migrations.AlterField("item", "title", models.CharField(max_length=60, null=True, db_index=True)),
        migrations.RenameField("item", "title", "label"),
    ]
