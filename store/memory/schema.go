package memory

import (
	"encoding/binary"
	"fmt"

	"github.com/hashicorp/go-memdb"

	"github.com/xxljob/xxljob"
)

// Tables and indexes of the catalogue. Objects are never changed once they are
// inserted: a change inserts another object.
const (
	tableJobs     = "jobs"     // *xxljob.Job; what changes with runs is in job
	tableGroups   = "groups"   // *xxljob.Group
	tableRegistry = "registry" // *xxljob.Registration
	tableNodes    = "nodes"    // *xxljob.Node; Beats and Left are in peer

	byID  = "id"
	byKey = "key"
	byApp = "app"
)

func newCatalogue() *memdb.MemDB {
	db, err := memdb.NewMemDB(&memdb.DBSchema{Tables: map[string]*memdb.TableSchema{
		tableJobs: table(tableJobs,
			unique(byID, func(j *xxljob.Job) []any { return []any{j.ID} }),
			unique(byKey, func(j *xxljob.Job) []any {
				if j.Key == "" {
					return nil
				}
				return []any{j.App, j.Key}
			}),
			unique(byApp, func(j *xxljob.Job) []any { return []any{j.App, j.ID} })),
		tableGroups:   table(tableGroups, unique(byID, func(g *xxljob.Group) []any { return []any{g.App} })),
		tableRegistry: table(tableRegistry, unique(byID, func(r *xxljob.Registration) []any { return []any{r.App, r.Address} })),
		tableNodes:    table(tableNodes, unique(byID, func(n *xxljob.Node) []any { return []any{n.Incarnation} })),
	}})
	if err != nil {
		panic(err) // the schema is a constant
	}
	return db
}

func table(name string, indexes ...*memdb.IndexSchema) *memdb.TableSchema {
	t := &memdb.TableSchema{Name: name, Indexes: map[string]*memdb.IndexSchema{}}
	for _, x := range indexes {
		t.Indexes[x.Name] = x
	}
	return t
}

// unique is an index by the given parts of an object; an object without parts
// is left out of it.
func unique[T any](name string, parts func(*T) []any) *memdb.IndexSchema {
	return &memdb.IndexSchema{Name: name, Unique: true, AllowMissing: name == byKey, Indexer: indexer[T]{parts}}
}

// indexer makes index keys without reflection. Any number of leading parts is a
// prefix to search by.
type indexer[T any] struct{ parts func(*T) []any }

func (x indexer[T]) FromObject(raw any) (bool, []byte, error) {
	parts := x.parts(raw.(*T))
	if parts == nil {
		return false, nil, nil
	}
	key, err := x.FromArgs(parts...)
	return err == nil, key, err
}

func (x indexer[T]) PrefixFromArgs(args ...any) ([]byte, error) { return x.FromArgs(args...) }

// FromArgs orders strings as bytes, and ids by value: ids are not negative.
func (x indexer[T]) FromArgs(args ...any) ([]byte, error) {
	key := make([]byte, 0, 64)
	for _, a := range args {
		switch a := a.(type) {
		case string:
			key = append(append(key, a...), 0)
		case int64:
			key = binary.BigEndian.AppendUint64(key, uint64(a))
		default:
			return nil, fmt.Errorf("memory: %T in an index", a)
		}
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
func first[T any](db *memdb.MemDB, table, index string, key ...any) (*T, error) {
	raw, err := db.Txn(false).First(table, index, key...)
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
