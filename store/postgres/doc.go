// Package postgres keeps jobs and runs in one schema of a Postgres database, 13 or
// later, for any number of nodes.
//
// Comes in: a pgxpool.Pool, which stays the caller's. Goes out: a store.Store.
//
//	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
//	...
//	store, err := postgres.New(ctx, pool, postgres.Config{AutoMigrate: true})
//	...
//	defer store.Close()
//
// # Rights
//
// Migrate needs a role that may create the schema, or that owns it. New is content
// with USAGE on the schema and its sequences and SELECT, INSERT, UPDATE and DELETE
// on its tables; then a role that may create tables has to call Migrate at least
// every week, for the partitions of the days to come, and retention deletes rows
// instead of dropping partitions. A role from which policies of row-level security keep
// rows is refused.
//
// # Sessions and poolers
//
// In both lease modes a process that has a node keeps one connection beside the pool in
// reserve: while the host uses all of the pool's, what a node claims, starts and stores
// goes over it (Config.NoReserve). Where there is none either, an error says how many of
// how many connections are in use.
//
// In LeaseLock, the default, a node has two further connections beside the pool: one holds
// an advisory lock for each of its shards, one listens. They need sessions of their
// own. Behind a pooler that shares sessions out by transaction take LeaseRow, which
// keeps nothing in a session, and default_query_exec_mode=exec where the pooler does
// not know prepared statements; New finds out about both. All nodes of a schema have
// the same mode. On connections whose DefaultQueryExecMode is
// pgx.QueryExecModeSimpleProtocol the store speaks nothing but the simple protocol, those
// beside the pool included.
//
// What the host's sessions are set to changes nothing: transactions of the store
// name their isolation and set their own timeouts, and no error is recognised by its
// text. The one thing refused is a client_encoding other than UTF8.
//
// # Connections that are of no use
//
// A connection of the pool that leads to a standby, to another database than New was in, or
// to a server that later connections do not reach, or whose role has lost its rights, is
// closed when the store is given it, and nothing is written over it. Others of the pool are
// left alone. An error says which it was.
//
// # Other roles of the database
//
// A role that may create functions and operators in a schema of the host's search_path,
// as each role may in public before Postgres 15, could have them called in place of the
// server's, with the rights of the role that calls. In the store's statements nothing leads
// to one: tables, functions and types are named with their schemas, and operators stand
// between operands of the very types that pg_catalog has them for. Besides, the store's
// transactions, its reads outside of transactions and its connections beside the pool have
// a search_path of their own, pg_catalog and pg_temp, which ends with the transaction or the
// read, so that sessions of the pool keep the host's; that holds also where the host's path
// names public before pg_catalog, at the price of one more round trip for each transaction
// and each read. TriggerTx and TriggerSQLTx change nothing in the host's transaction, and
// name the schemas of their operators too.
//
// A trigger that the host puts on one of the tables runs on that path as well, so its
// function has to name schemas, or to set a search_path of its own.
//
// # Beside roles that are not trusted
//
// Advisory locks are anybody's who may connect to the database. A session without rights
// on the tables that takes those of shards keeps no node from them: the shards are taken by
// their epochs, which fence every write, and the log says who holds the locks. (From a
// session of a role that has these rights, which may be a node's that is paused, they are
// taken after a LeaseTTL.) But while it has them, a node that dies is followed once it was
// silent for a LeaseTTL, as in LeaseRow, and not at once. One that takes the lock of
// migrations keeps Migrate out, which ends after ten seconds with an error that names it.
// Beside such roles take a database of its own, or LeaseRow, and migrate while nobody else
// is connected.
//
// # What a crash of the database may cost
//
// Nothing that was acknowledged is lost, and nothing is started twice, as long as
// the server flushes what it commits: every transaction that claims, starts or ends
// runs waits for its commit with synchronous_commit = on, or remote_apply where the
// session has that. With Config.AllowAsyncCommit the session's own setting holds:
// where that is off, a crash can take back the last starts and results, and those
// runs run a second time. A server with fsync = off can lose everything; New warns.
//
// # Runs by day
//
// Ids of runs grow with time, and xxl_job_log has a partition for each day of them,
// in UTC, made a fortnight ahead by New, Migrate and a running node, and by whoever
// needs one that is missing. DropRuns forgets whole days.
//
// # Triggers within a transaction
//
// TriggerTx and TriggerSQLTx plan a run in the caller's own transaction: it exists
// when that commits. It is found within a second of the commit, or at once where the
// host calls Wake after it, or has Config.TxNotify notify within it.
package postgres
