package memory

import (
	"fmt"

	"github.com/hashicorp/go-memdb"
	"github.com/xxljob/xxljob/store"
)

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
