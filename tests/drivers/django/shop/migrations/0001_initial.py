import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
import django.db.models.functions.text
import uuid
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='Label',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, primary_key=True, serialize=False)),
                ('text', models.SlugField(unique=True)),
            ],
        ),
        migrations.CreateModel(
            name='Owner',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(db_comment='as they call themselves', max_length=40, unique=True)),
            ],
        ),
        migrations.CreateModel(
            name='Item',
            fields=[
                ('id', models.IntegerField(primary_key=True, serialize=False)),
                ('label', models.CharField(db_index=True, max_length=60, null=True)),
                ('parent', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to='shop.item')),
            ],
        ),
        migrations.CreateModel(
            name='Account',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.UUIDField(default=uuid.uuid4)),
                ('balance', models.DecimalField(decimal_places=2, default=0, max_digits=14)),
                ('mood', models.CharField(choices=[('sad', 'Sad'), ('ok', 'Ok'), ('happy', 'Happy')], default='ok', max_length=5)),
                ('tags', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=20), default=list, size=None)),
                ('detail', models.JSONField(null=True)),
                ('opened', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('lasts', models.DurationField(null=True)),
                ('picture', models.BinaryField(default=b'')),
                ('note', models.TextField(blank=True)),
                ('doubled', models.GeneratedField(db_persist=True, expression=django.db.models.expressions.CombinedExpression(models.F('balance'), '*', models.Value(2)), output_field=models.DecimalField(decimal_places=2, max_digits=15))),
                ('labels', models.ManyToManyField(to='shop.label')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='accounts', to='shop.owner')),
            ],
            options={
                'indexes': [models.Index(fields=['owner', '-opened'], name='account_owner_opened'), models.Index(django.db.models.functions.text.Lower('note'), name='account_note'), models.Index(condition=models.Q(('balance__gt', 1000)), fields=['mood'], include=('balance',), name='account_rich')],
                'constraints': [models.CheckConstraint(condition=models.Q(('balance__gte', 0)), name='account_not_below'), models.UniqueConstraint(condition=models.Q(('note', ''), _negated=True), fields=('owner', 'note'), name='account_note_once')],
            },
        ),
    ]
