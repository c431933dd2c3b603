DROP TABLE item;
DROP TABLE account;
DROP TABLE owner;
DROP DOMAIN small;
DROP TYPE place;
DROP TYPE mood;
