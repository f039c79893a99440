-- Lists skip rows on indexes alone, which spares reading the rows only where a vacuum has seen them since they changed.
alter table users set (autovacuum_vacuum_insert_scale_factor = 0.02);
alter table posts set (autovacuum_vacuum_insert_scale_factor = 0.02);
alter table comments set (autovacuum_vacuum_insert_scale_factor = 0.02);
alter table orders set (autovacuum_vacuum_insert_scale_factor = 0.02);
