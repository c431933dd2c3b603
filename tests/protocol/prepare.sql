-- What the messages of this directory are about.
CREATE TABLE sink (a int);
CREATE ROLE plain LOGIN PASSWORD 'secret';
CREATE ROLE keyed LOGIN PASSWORD 'secret';
SET password_encryption = 'md5';
CREATE ROLE digest LOGIN PASSWORD 'secret';
