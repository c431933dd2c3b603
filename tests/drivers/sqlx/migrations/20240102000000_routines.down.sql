DROP PROCEDURE split(text, refcursor);
DROP PROCEDURE rename(bigint, text);
DROP FUNCTION deposit(int, numeric);
