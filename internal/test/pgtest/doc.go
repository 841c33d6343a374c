// Package pgtest gives tests a Postgres of their own: one throw-away cluster for
// the tests of a process, a schema for every test, and further clusters, standbys
// and poolers for tests of faults.
//
// Comes in: an installed Postgres, or the address of one in
// XXLJOB_TEST_DATABASE_URL. Goes out: pools, schemas and connection strings;
// everything is gone when the process is, however it ends.
//
//	func TestStore(t *testing.T) {
//		pool, schema := pgtest.Pool(t), pgtest.Schema(t)
//		...
//	}
//
// # Where Postgres comes from
//
// XXLJOB_TEST_DATABASE_URL names a database whose user may create schemas. Where
// it is not set, the first test that asks starts a cluster (see Find for where
// the programs are looked for). It flushes nothing to disk: a server that is killed has lost
// nothing, and no test ends the machine; and it vacuums nothing by itself. Its files lie in
// /dev/shm where 4 GiB are free there, of 8 GiB of memory, and TMPDIR is not set: tables are made
// and dropped for half the processor time of a disk's file system. The tests work in it as an ordinary role, not as a
// superuser.
//
// Where there is neither, tests are skipped, saying what to install. With
// XXLJOB_REQUIRE_POSTGRES=1 they fail instead; `make test` sets it. Without pgbouncer
// the tests behind one are skipped aloud, also by `make test`, and fail where CI=true.
//
// # Files
//
//   - pool.go, schema.go, database.go: what tests use
//   - server.go, find.go: the one server of the process, and its programs
//   - install.sh: what `make test` installs
//   - cluster.go, run.go, standby.go: clusters, without package testing
//   - bouncer.go: pgbouncer in front of one
//   - wrap.go: clusters and poolers that end with a test; skip or fail
//   - home.go, memory_linux.go, process.go, account.go: directories and processes that do not
//     outlive us, and do not run as root
package pgtest
