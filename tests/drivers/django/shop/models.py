"""The application's own tables."""

import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models


class Owner(models.Model):
    name = models.CharField(max_length=40, unique=True, db_comment="as they call themselves")


class Account(models.Model):
    class Mood(models.TextChoices):
        SAD = "sad"
        OK = "ok"
        HAPPY = "happy"

    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="accounts")
    key = models.UUIDField(default=uuid.uuid4)
    balance = models.DecimalField(max_digits=14, decimal_places=2, default=0)
    mood = models.CharField(max_length=5, choices=Mood.choices, default=Mood.OK)
    tags = ArrayField(models.CharField(max_length=20), default=list)
    detail = models.JSONField(null=True)
    opened = models.DateTimeField(db_default=models.functions.Now())
    lasts = models.DurationField(null=True)
    picture = models.BinaryField(default=b"")
    note = models.TextField(blank=True)
    labels = models.ManyToManyField("Label")
    doubled = models.GeneratedField(
        expression=models.F("balance") * 2, output_field=models.DecimalField(max_digits=15, decimal_places=2), db_persist=True
    )

    class Meta:
        indexes = [
            models.Index(fields=["owner", "-opened"], name="account_owner_opened"),
            models.Index(models.functions.Lower("note"), name="account_note"),
            models.Index(fields=["mood"], condition=models.Q(balance__gt=1000), name="account_rich", include=["balance"]),
        ]
        constraints = [
            models.CheckConstraint(condition=models.Q(balance__gte=0), name="account_not_below"),
            models.UniqueConstraint(fields=["owner", "note"], condition=~models.Q(note=""), name="account_note_once"),
        ]


class Label(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    text = models.SlugField(unique=True)


class Item(models.Model):
    id = models.IntegerField(primary_key=True)
    label = models.CharField(max_length=60, null=True, db_index=True)
    parent = models.ForeignKey("self", null=True, on_delete=models.SET_NULL)
