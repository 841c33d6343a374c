package postgres_test

import (
	"context"
	"encoding/binary"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
	"github.com/xxljob/xxljob/store/storetest"
)

// throughAPooler are the cases that are run through a pooler, by their topics; nil stands for all of
// a topic. What is another there is how a statement is sent, and how its results are read, so these
// are the fewest of the suite in which each statement that its topics send is sent, and returns rows if
// it does so in any of them. What follows from what is read is the same however it was sent. Topics that go
// by sessions, and by hints of others, are whole.
func throughAPooler() map[string][]string {
	return map[string][]string{
		"Texts":     {"OfProgressAreMadeValid", "OfStartsAreMadeValid"},
		"Job":       {"JobsFilters"},
		"List":      {"AListIsOfANodeThatIsThere", "AListTakesThePlaceOfTheFormer", "AddJobsLeavesOutTakenKeys", "InsteadComparesTheHeadAndTheListsOfOthers", "UnnameJobIsTheOppositeOfNameJobs"},
		"Group":     {"SaveInsertsAndReplaces"},
		"Run":       {"RunsEndedSinceAmongThoseLookedAt", "RunsFilters", "RunsHaveTheNamesOfTheirJobs"},
		"Ahead":     {"HasTheNamesOfItsJob", "IsListedByEachFilter", "KeepsTheTrigger", "PagesCoverAllOnce"},
		"Scan":      {"WaitingCountsPlannedRuns"},
		"Start":     {"BusyAtATarget", "DiscardsWhatItCovers", "EveryReaderHasTheBootID"},
		"HandOver":  {"DispatchedMismatchChangesNothing"},
		"Settle":    {"ToStartedAdoptsTheRun"},
		"Log":       {"AnswerToAnUnknownAsk"},
		"Finish":    {"AnswersInOrderGiven"},
		"Follow":    {"ADelayWaitsForTheLastAttempt", "ARetryIsFoundByScans", "KillOfAPartLeavesTheOthers", "NothingFollowsAKill", "OfOneInstantTheFirstTriggerGoesFirst", "SnoozedRunsAreListedByTheirState"},
		"Owed":      {"AJoinIsNamedByIDAndByKey", "AWindowThatIsOverStaysClosed", "AnAbsentChildLeavesTheOthersAlone", "LinksFollowEdits", "PartsInOneBatchOweOnce"},
		"Alarms":    {"AHoldEnds", "ARuleInPlaceOfAnother", "AnEditOfLateAfterCounts", "RecoveredByThatVeryRun", "RemovedJobsAreDropped", "RulesAreDropped", "TheRecordOfAnEdit", "WhatIsNotThereIsLeftOut"},
		"Progress":  {"OfUnknownRunsIsIgnored"},
		"Arm":       {"SweepFinishes"},
		"Bounded":   {"RunsOfTheFormerScheduleAreNotTakenOut"},
		"Registry":  {"DropRemoves", "ForgetLeavesFreshOnes", "RegistrationsLimitDefaultsTo100", "ServedIsWhatWasNotedLast"},
		"Read":      {"JobsAreCounted", "JobsByEachField", "JobsForAText", "JobsInEachOrder", "JobsWithShortTexts", "ListsOfRunsWithShortTexts", "OpenRunsByApp", "SchedulesThatAreNotStopped", "SearchByEachField", "SearchByHowLateRunsAre", "SearchByHowLongRunsTook", "SearchByTheTimeOfPlanning", "SearchForHowARunWasRouted", "SearchOfOneJob", "SearchRefusesWhatIsAbsurd", "SearchWithoutSecrets", "ValuesByPrefix", "ViewWithoutJoining"},
		"Reports":   {"FoldingChangesNothing", "OfManyAppsAsFarAsTheBound", "OfSomeAppsAndTimes", "ReadAsFarAsTheBound", "WhatIsRefusedChangesNothing"},
		"Record":    {"EntriesAreBounded", "EntriesOfApps", "EntriesOfRuns", "OldEntriesAreDropped", "SearchByEachField", "SearchByTime", "SearchGoesOnWhereItStopped"},
		"Mutes":     {"AMuteOfAJobHasItsApp", "AMuteTakesThePlaceOfOneWithItsKey", "EachChangeOfAMuteIsRecorded"},
		"Troubles":  {"ANoteIsDoneWithAsAnAlarm"},
		"AppTokens": {"ATokenOfAppsExpires", "EachTokenOfAppsIsRecorded"},
		"Accounts":  {"ChangesOfUsersAreRecorded", "CodesAreBounded", "HashesAreMadeAnew", "SessionsAreBounded", "SessionsAreEnded", "SessionsAreSeen", "SessionsEndUnused", "TheFirstUserNeedsACode", "TokensAreKept", "TriesOfOthersDoNotCount", "UsersAreChecked", "UsersAreRemoved"},
		"Drop":      {"ADryRunDeletesNothing", "ExpiredRunsThatAreNeededStay", "TheKeyOfARunGoesWithIt", "ThePagesOfALogGoWithItsRun", "WhatIsSecretStaysSoWhenItsParentIsDeleted"},
		"Node":      nil,
		"Signals":   nil,
	}
}

// TestConformanceThroughAPooler runs cases of the suite in row mode, through a pooler that shares
// sessions out by transaction. Statements go whole, and nothing is prepared; once arguments and
// results are texts as well. The life of a run is in TestSettingsOfTheHostChangeNothing by each
// protocol, and the modes that describe statements are in TestConformanceBesideHostileOperators.
func TestConformanceThroughAPooler(t *testing.T) {
	inServer(t)
	t.Parallel()
	// A server of its own: where others make and drop tables, statements that are not prepared look all up anew.
	server := pgtest.Start(t, pgtest.Options{NoFsync: true, Settings: map[string]string{"full_page_writes": "off", "autovacuum": "off", "jit": "off"}})
	there := &schemas{pool: pgtest.Pool(t, pgtest.At(server.DSN("postgres")))}
	dsn := pgtest.PgBouncer(t, server.DSN("postgres"))
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		pooled := pgtest.Pool(t, pgtest.At(dsn), by(mode), pgtest.MaxConns(24))
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			only := cases(t, throughAPooler())
			storetest.Run(t, func(t *testing.T) store.Store {
				only(t)
				return there.open(t, pooled, postgres.Patient(postgres.Config{LeaseMode: postgres.LeaseRow}))
			})
		})
	}
}

// TestAPoolerIsFoundOutAtNew: what does not work behind one is an error that says
// what does.
func TestAPoolerIsFoundOutAtNew(t *testing.T) {
	t.Parallel()
	dsn := pgtest.PgBouncer(t, pgtest.DSN(t))
	schema := migrated(t, pgtest.SharedPool(t))
	exec := pgtest.Pool(t, pgtest.At(dsn), by(pgx.QueryExecModeExec))
	for range 2 { // the first check must not spoil the sessions of the pooler
		wantText(t, newStore(t, exec, postgres.Config{Schema: schema}), "pooler in transaction mode", `Config.LeaseMode to "row"`, "Config.LockConn")
	}
	for _, name := range []string{"statement_timeout", "lock_timeout"} {
		if got := ask[string](t, exec, "select current_setting('"+name+"')"); got != "0" {
			t.Errorf("%s of the pooler's sessions is left at %s", name, got)
		}
	}
	for _, cfg := range []postgres.Config{{Schema: schema, LeaseMode: postgres.LeaseRow}, {Schema: schema, LockConn: lockConn(t)}} { // direct connections for locks say nothing of the pool's
		prepared := pgtest.Pool(t, pgtest.At(pgtest.PgBouncer(t, pgtest.DSN(t)))) // in whose sessions nothing is prepared yet
		wantText(t, newStore(t, prepared, cfg), "default_query_exec_mode=exec")
	}
	must(t, newStore(t, exec, postgres.Config{Schema: schema, LeaseMode: postgres.LeaseRow}))
	direct := postgres.Config{Schema: schema, LockConn: lockConn(t)}
	s, err := postgres.New(t.Context(), exec, direct)
	must(t, err)
	defer s.Close()
	life(t, s)
}

// leftInSession is what a session of the pooler's has that is not of the pooler's making,
// nor of the transaction that asks.
const leftInSession = `select name || ' = ' || setting from pg_settings
	where source = 'session' and name !~ '^transaction_' and name not in
		('application_name', 'client_encoding', 'DateStyle', 'IntervalStyle', 'TimeZone', 'standard_conforming_strings')
	union all select 'listens to ' || pg_listening_channels()
	union all select 'has prepared ' || name from pg_prepared_statements
	union all select 'holds a lock' from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()`

// transactions begins as many as there is room for in the pool, and returns what ends them.
func transactions(t *testing.T, pool *pgxpool.Pool) (list []pgx.Tx, end func()) {
	t.Helper()
	for range pool.Config().MaxConns {
		x, err := pool.Begin(t.Context())
		must(t, err)
		_, err = x.Exec(t.Context(), "select 1")
		must(t, err)
		list = append(list, x)
	}
	return list, func() {
		for _, x := range list {
			x.Rollback(context.Background())
		}
	}
}

// TestReserveThroughAPooler: with locks over connections of its own, a node whose host has
// all of a pool that leads to a pooler, each in a transaction, works on over a reserve that
// leads there too. Nothing of it stays in the sessions that the pooler shares out, and no
// lock is held by one.
func TestReserveThroughAPooler(t *testing.T) {
	t.Parallel()
	dsn := pgtest.PgBouncer(t, pgtest.DSN(t))
	pooled := pgtest.Pool(t, pgtest.At(dsn), by(pgx.QueryExecModeExec), pgtest.MaxConns(4), noticing())
	s := openOn(t, pooled, postgres.Config{LockConn: lockConn(t)})
	a := own(t, s, inc(t, "a"), 2)
	s.Watch(t.Context(), a.inc)
	jobs := []store.Job{a.job(), a.job()}
	_, endHosts := transactions(t, pooled)
	defer endHosts()
	a.ctx = impatient(t, a.ctx)
	for _, job := range jobs {
		run := a.started(job)
		_, err := s.Finish(a.ctx, nil, []store.Result{result(run)})
		must(t, err)
		loops(t, a, run)
	}
	locked(t, s, "xxl_job_group")
	await.Until(t, "the server ends a read that waits for a lock", func() bool { // see TestAStuckStatementOfTheReserve
		_, err := s.Group(a.ctx, "app")
		return endedByServer(t, "a read", err)
	})

	beside := holder(t, a.inc)
	locks := func(when string, want int) {
		t.Helper()
		held := locksOf(t, beside)
		elsewhere := ask[int](t, pgtest.SharedPool(t), "select count(*)::int from pg_locks where locktype = 'advisory' and classid::bigint = any($1) and pid <> $2", postgres.LockClasses(s), beside)
		if beside == 0 || held != want || elsewhere != 0 {
			t.Errorf("%s, backend %d beside the pooler holds %d locks, and others %d, want %d and 0", when, beside, held, elsewhere, want)
		}
	}
	locks("at first", 2)
	must(t, s.ReleaseShards(a.ctx, a.inc, a.shards))
	locks("without shards", 0)
	taken, err := s.TakeShards(a.ctx, a.inc, a.beat().Shards)
	if must(t, err); len(taken) != 2 {
		t.Errorf("took %+v", taken)
	}
	locks("with shards again", 2)

	// More transactions than there were before see every session that there is.
	endHosts()
	all, end := transactions(t, pgtest.Pool(t, pgtest.At(dsn), by(pgx.QueryExecModeExec), pgtest.MaxConns(10)))
	defer end()
	for _, x := range all {
		rows, err := x.Query(t.Context(), leftInSession)
		must(t, err)
		left, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if must(t, err); len(left) > 0 {
			t.Errorf("left in a session of the pooler: %q", left)
		}
	}
}

// spoken are the types of the messages that connections have sent, in order. It is for
// connections without TLS.
type spoken struct {
	mu    sync.Mutex
	types strings.Builder // guarded by mu
}

func (s *spoken) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &spokenConn{Conn: conn, spoken: s}, nil
}

// extended are the messages of the extended protocol among them: parse, bind, describe,
// execute, close, sync and flush.
func (s *spoken) extended() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("PBDECSH", r) {
			return r
		}
		return -1
	}, s.types.String())
}

// queries is how many messages of the simple protocol are among them.
func (s *spoken) queries() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.types.String(), "Q")
}

type spokenConn struct {
	net.Conn
	spoken *spoken
	mu     sync.Mutex
	rest   []byte // guarded by mu: of a message that is not written wholly
	begun  bool   // guarded by mu: messages have types, but for those before
}

// protocol3 is the code of the message after which all others have a type.
const protocol3 = 3

func (c *spokenConn) Write(b []byte) (int, error) {
	c.note(b)
	return c.Conn.Write(b)
}

func (c *spokenConn) note(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rest = append(c.rest, b...)
	for {
		head := 0 // bytes before the length
		if c.begun {
			head = 1
		}
		if len(c.rest) < head+4 {
			return
		}
		end := head + int(binary.BigEndian.Uint32(c.rest[head:]))
		if len(c.rest) < end {
			return
		}
		if c.begun {
			c.spoken.mu.Lock()
			c.spoken.types.WriteByte(c.rest[0])
			c.spoken.mu.Unlock()
		} else {
			c.begun = binary.BigEndian.Uint16(c.rest[4:]) == protocol3
		}
		c.rest = c.rest[end:]
	}
}

// TestSimpleProtocolOnly: where the host's connections are set to the simple protocol,
// for what is between them and the server knows no other, the store speaks no other either:
// with its tables, in the life of a job, for locks, to listen, and over the reserve.
func TestSimpleProtocolOnly(t *testing.T) {
	t.Parallel()
	for _, mode := range []postgres.LeaseMode{postgres.LeaseLock, postgres.LeaseRow} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			said := &spoken{}
			pool := pgtest.Pool(t, by(pgx.QueryExecModeSimpleProtocol), pgtest.MaxConns(4), pgtest.With(func(c *pgxpool.Config) { c.ConnConfig.DialFunc = said.dial }))
			s, err := postgres.New(t.Context(), pool, postgres.Config{Schema: pgtest.Schema(t), AutoMigrate: true, LeaseMode: mode})
			must(t, err)
			defer s.Close()
			life(t, s)
			a := own(t, s, inc(t, "a"), 2)
			job := a.job()
			s.Watch(t.Context(), a.inc)
			await.Until(t, "there is a reserve", func() bool { return reserves(t, s) == 1 })
			must(t, s.Wake(t.Context(), job.ID))
			useUp(t, pool)
			_, err = s.Claim(a.ctx, nil, []store.Plan{a.plan(job)})
			must(t, err)
			if extended := said.extended(); extended != "" || said.queries() == 0 {
				t.Errorf("%d queries, and of the extended protocol %q", said.queries(), extended)
			}
		})
	}
}
