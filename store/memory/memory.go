// Package memory keeps an xxljob store in the memory of one process.
//
// It does everything that the contract of [store.Store] says, for one process:
// several Schedulers may share one Store and behave as a cluster, so that
// take-over, hand-over and fencing can be tested in virtual time. It keeps
// nothing across an exit of the process.
//
// The store has two halves. The catalogue — groups, registered addresses, the
// slow part of nodes — is a go-memdb database: it has the indexes and gives
// snapshots. Jobs, of which there may be a million, and what changes with every
// run live in plain structures under one mutex: definitions of jobs by id and by
// key, a due index and sets of unended runs for each shard, and the runs in
// segments by id. A transaction that touches both halves holds the mutex from
// its first read to its last write, so that every other call sees both changed
// or none.
//
// Ids are not those of an earlier process, since executors elsewhere may remember them:
// ids of runs begin at the clock, as those of store/postgres do, and at 1 where it is
// before 2025, as in bubbles of testing/synctest. The ID of a job is a hash of its App and
// Key, or Name where it has no Key, the same in each process; where this store has given
// it before, also to a job that was removed, it is the next one that is free.
//
// Ended runs are kept up to a bound for each job and one in total (see
// [Retain]), and up to one in bytes of their texts (see [RetainBytes]), their logs up to another
// (see [RetainLogs]); runs that have not ended are never dropped, nor are they bounded: one that is
// planned years ahead takes half a kilobyte, and its parameter, until it is due.
package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-memdb"

	"github.com/xxljob/xxljob/store"
)

var (
	_ store.Store          = (*Store)(nil)
	_ store.RetentionAware = (*Store)(nil)
	_ store.Volatile       = (*Store)(nil)
	_ store.ZoneNoter      = (*Store)(nil)
	_ store.ProcessNoter   = (*Store)(nil)
)

// OutlivesProcess is false: nothing is kept across an exit.
func (s *Store) OutlivesProcess() bool { return false }

// errNoShards is the answer of every method that writes, before SetShards.
var errNoShards = errors.New("memory: SetShards comes before the first write")

// Store is a store.Store in memory. Its methods may be called by many
// goroutines and many Schedulers at once.
//
// The functions of an store.Edit, and the one that AddJob is given, are called with
// the store locked: they must be pure, as their contract says, and must not call the store. One that panics
// changes nothing and leaves the store usable.
type Store struct {
	db   *memdb.MemDB // the catalogue; locks itself
	keep retention    // set by New

	mu         sync.Mutex                // never held while waiting for anything
	shards     []*shard                  // guarded by mu; nil until SetShards
	jobs       map[int64]*job            // guarded by mu; removed ones too, while runs or audit are kept
	apps       map[string]*app           // guarded by mu
	noWork     *work                     // of the jobs that have none; never changed
	idle       []*work                   // guarded by mu; to be used again
	jobIDs     jobIDs                    // guarded by mu
	removed    []int64                   // guarded by mu; removed jobs with audit, oldest first
	record     []*noted                  // guarded by mu; of changes, in order of ID; what is within is never changed
	lastChange int64                     // guarded by mu
	changes    recorded                  // guarded by mu; what the record takes
	logs       int64                     // guarded by mu; bytes of the pages of all runs
	texts      int64                     // guarded by mu; bytes of the texts of ended runs
	runs       runs                      // guarded by mu
	ended      list                      // guarded by mu; all ended runs, in order of their end
	keys       map[triggerKey]int64      // guarded by mu; keys of triggers whose run is kept
	peers      map[string]*peer          // guarded by mu; by incarnation
	buried     []tombstone               // guarded by mu; deleted nodes, oldest first
	jobLists   jobLists                  // guarded by mu
	served     map[string]store.Served   // guarded by mu; by app
	mutes      map[string]store.Mute     // guarded by mu; by key
	appTokens  map[string]store.AppToken // guarded by mu; by name
	watchers   []*watcher                // guarded by mu
	asks       []*question               // guarded by mu; oldest first
	lastAsk    int64                     // guarded by mu
	joins      map[string]map[int64]bool // guarded by mu; the jobs behind one, by IDRef or "app/key"
	windows    map[windowKey]*window     // guarded by mu; open ones
	lastWindow int64                     // guarded by mu
	rules      map[string]*keptRule      // guarded by mu; by key
	ruleNodes  map[ruleNode]ruleNodeKept // guarded by mu
	alarms     map[int64]*store.Alarm    // guarded by mu; not done with
	noted      map[string]openTrouble    // guarded by mu; by the key of a trouble that has begun
	lastAlarm  int64                     // guarded by mu
	told       map[jobRule]store.JobTold // guarded by mu
	children   map[int64][]*run          // guarded by mu; of each run, in order of ID
	watched    map[int64]bool            // guarded by mu; jobs with LateAfter
	keepers    map[int64]bool            // guarded by mu; jobs with KeepRuns
	owing      map[int64]int             // guarded by mu; how much each run owes
	lastOwed   int64                     // guarded by mu
	hasEnded   bool                      // guarded by mu; this transaction ended a run
	lastEnd    int64                     // guarded by mu; no run has ended later
	reports    reports
	accounts   accounts // guarded by mu

	retention time.Duration // guarded by mu; see KnowRetention

	goesBy func() time.Time // guarded by mu; see GoBy
}

// Option changes a Store that New makes.
type Option func(*Store)

// New returns an empty store.
func New(opts ...Option) *Store {
	s := &Store{
		db:      newCatalogue(),
		keep:    retention{perJob: 10_000, total: 200_000, texts: 64 << 20, logs: 256 << 20},
		jobs:    map[int64]*job{},
		apps:    map[string]*app{},
		noWork:  newWork(),
		keys:    map[triggerKey]int64{},
		joins:   map[string]map[int64]bool{},
		windows: map[windowKey]*window{},
		alarms:  map[int64]*store.Alarm{},
		told:    map[jobRule]store.JobTold{},
		rules:   map[string]*keptRule{}, ruleNodes: map[ruleNode]ruleNodeKept{},
		children:  map[int64][]*run{},
		watched:   map[int64]bool{},
		keepers:   map[int64]bool{},
		owing:     map[int64]int{},
		peers:     map[string]*peer{},
		served:    map[string]store.Served{},
		mutes:     map[string]store.Mute{},
		appTokens: map[string]store.AppToken{},
		noted:     map[string]openTrouble{},
		accounts:  newAccounts(),
		jobLists:  jobLists{heads: map[string]store.ListHead{}, ofNodes: map[string]map[string]*nodeList{}},
		runs:      runs{last: idsBefore(time.Now())},
		ended:     list{by: allEnded},
	}
	s.jobIDs.jobs = s.jobs
	s.reports.clock = s.clock
	for _, o := range opts {
		o(s)
	}
	return s
}

// Poll returns zero: signals of this store are never lost.
func (s *Store) Poll() (scan, inbox time.Duration) { return 0, 0 }

// begin starts a transaction that writes. Unless it returns an error, mu is
// held, and done ends the transaction.
func (s *Store) begin(ctx context.Context) error {
	s.mu.Lock()
	err := over(ctx)
	if err == nil && s.shards == nil {
		err = errNoShards
	}
	if err != nil {
		s.mu.Unlock()
	}
	return err
}

// done ends a transaction. It is deferred, so that a panic in a function of the
// caller's does not leave the store locked.
func (s *Store) done() {
	if s.hasEnded {
		s.hasEnded = false
		s.tellEnded()
	}
	s.mu.Unlock()
}

// look starts a transaction that only reads. Unless it returns an error, mu is
// held.
func (s *Store) look(ctx context.Context) error {
	s.mu.Lock()
	if err := over(ctx); err != nil {
		s.mu.Unlock()
		return err
	}
	return nil
}

// over returns the error of a context that has ended, or is none.
func over(ctx context.Context) error {
	if ctx == nil {
		return errors.New("memory: the context is nil")
	}
	return ctx.Err()
}

// GoBy has the store go by a clock that is not the process's, from here on; nil for that one again.
// It is for tests of what becomes of a scheduler whose store has a clock that is moved.
func (s *Store) GoBy(clock func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.goesBy = clock
}

// clock is what every method reads once. It is called with mu held.
func (s *Store) clock() time.Time {
	if s.goesBy != nil {
		return stored(s.goesBy())
	}
	return stored(time.Now())
}

// stored is t as the store keeps times: in UTC, to the millisecond.
func stored(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// noTime is the zero time in milliseconds. The two conversions below are each
// other's inverse for it too, so the zero time needs no special case.
const noTime int64 = -62135596800000

func toMilli(t time.Time) int64    { return t.UnixMilli() }
func fromMilli(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// failed wraps an error of the contract with what was attempted.
func failed(err error, format string, args ...any) error {
	return fmt.Errorf("memory: %s: %w", fmt.Sprintf(format, args...), err)
}

// Tables and indexes of the catalogue. Objects are never changed once they are
// inserted: a change inserts another object.
const (
	tableGroups   = "groups"   // *store.Group
	tableRegistry = "registry" // *store.Registration
	tableNodes    = "nodes"    // *store.Node; Beats and Left are in peer

	byID = "id"
)

func newCatalogue() *memdb.MemDB {
	db, err := memdb.NewMemDB(&memdb.DBSchema{Tables: map[string]*memdb.TableSchema{
		tableGroups:   table(tableGroups, by(func(g *store.Group) []any { return []any{g.App} })),
		tableRegistry: table(tableRegistry, by(func(r *store.Registration) []any { return []any{r.App, r.Address} })),
		tableNodes:    table(tableNodes, by(func(n *store.Node) []any { return []any{n.Incarnation} })),
	}})
	if err != nil {
		panic(err) // the schema is a constant
	}
	return db
}

func table(name string, index *memdb.IndexSchema) *memdb.TableSchema {
	return &memdb.TableSchema{Name: name, Indexes: map[string]*memdb.IndexSchema{index.Name: index}}
}

// by is the index by the given parts of an object.
func by[T any](parts func(*T) []any) *memdb.IndexSchema {
	return &memdb.IndexSchema{Name: byID, Unique: true, Indexer: indexer[T]{parts}}
}

// indexer makes index keys without reflection. Any number of leading parts is a
// prefix to search by.
type indexer[T any] struct{ parts func(*T) []any }

func (x indexer[T]) FromObject(raw any) (bool, []byte, error) {
	key, err := x.FromArgs(x.parts(raw.(*T))...)
	return err == nil, key, err
}

func (x indexer[T]) PrefixFromArgs(args ...any) ([]byte, error) { return x.FromArgs(args...) }

// FromArgs orders strings as bytes.
func (x indexer[T]) FromArgs(args ...any) ([]byte, error) {
	key := make([]byte, 0, 64)
	for _, a := range args {
		text, is := a.(string)
		if !is {
			return nil, fmt.Errorf("memory: %T in an index", a)
		}
		key = append(append(key, text...), 0)
	}
	return key, nil
}

// insert puts one object into the catalogue, in a transaction of its own.
func (s *Store) insert(table string, object any) error {
	txn := s.db.Txn(true)
	defer txn.Abort()
	if err := txn.Insert(table, object); err != nil {
		return err
	}
	txn.Commit()
	return nil
}

// remove takes what has the key out of the catalogue, and reports how many
// objects that were.
func (s *Store) remove(table string, key ...any) (int, error) {
	txn := s.db.Txn(true)
	defer txn.Abort()
	n, err := txn.DeleteAll(table, byID, key...)
	if err != nil {
		return 0, err
	}
	txn.Commit()
	return n, nil
}

// first returns the object under the key, or nil.
func first[T any](db *memdb.MemDB, table string, key ...any) (*T, error) {
	raw, err := db.Txn(false).First(table, byID, key...)
	if err != nil || raw == nil {
		return nil, err
	}
	return raw.(*T), nil
}

// all returns the objects whose key begins with the given parts, in order.
func all[T any](db *memdb.MemDB, table string, parts ...any) ([]*T, error) {
	it, err := db.Txn(false).Get(table, byID+"_prefix", parts...)
	if err != nil {
		return nil, err
	}
	var found []*T
	for raw := it.Next(); raw != nil; raw = it.Next() {
		found = append(found, raw.(*T))
	}
	return found, nil
}
