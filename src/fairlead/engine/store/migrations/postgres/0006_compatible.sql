-- Compatible: a migration may say which older programs can go on after it.

ALTER TABLE migrations ADD COLUMN compatible_with text;
