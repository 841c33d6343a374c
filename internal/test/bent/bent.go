// Package bent has stores of which a test bends a method or two.
//
// What bends them is a value whose methods stand in place of those of the same name:
//
//	// deaf hears of no kill.
//	type deaf struct{ st store.Store }
//
//	func (d deaf) Kill(ctx context.Context, id int64, _ string) (store.Run, error) { return d.st.Run(ctx, id) }
//
//	s := bent.StoreOf(st, deaf{st})
//
// A type that embedded the store would be one as well. But Go's compiler writes a function for each method
// that a type has of what it embeds, a hundred and more, and twice, for each such type of each test
// binary. Here they are written once for all.
package bent

import (
	"fmt"
	"reflect"

	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/storetest"
)

// All is what both stores of this module are.
type All interface {
	storetest.Whole
	store.RunRedater
	store.ZoneNoter
	store.ProcessNoter
	store.RetentionAware
}

// StoreOf returns a store of which each call goes to by where that has a method of this name, and to s
// otherwise. It is a store.Store and nothing that a store may be as well, whatever s is. It panics if by
// has a method that such a store has not, or has none, since a test that bends nothing shows nothing.
func StoreOf(s store.Store, by any) store.Store {
	b := &bentStore{s, by}
	mustBend(b, by)
	return b
}

// WholeOf is StoreOf for a store that is all that a console asks for, and returns such a one.
func WholeOf(s storetest.Whole, by any) storetest.Whole {
	b := &bentWhole{bentStore{s, by}, s}
	mustBend(b, by)
	return b
}

// AllOf is StoreOf for a store that is all that both stores are, and returns such a one. It outlives the
// process where s does.
func AllOf(s All, by any) All {
	b := &bentAll{bentWhole{bentStore{s, by}, s}, s}
	mustBend(b, by)
	return b
}

// either returns by if it has the methods of T, and st otherwise.
func either[T any](by any, st T) T {
	if bends, is := by.(T); is {
		return bends
	}
	return st
}

// mustBend panics unless each exported method of by is in place of one of the store.
func mustBend(bent, by any) {
	of, methods := reflect.ValueOf(bent), reflect.ValueOf(by)
	if methods.NumMethod() == 0 {
		panic(fmt.Sprintf("bent: %T has no method, or they are of a pointer to it", by))
	}
	for i := range methods.NumMethod() {
		name := methods.Type().Method(i).Name
		if m := of.MethodByName(name); !m.IsValid() || m.Type() != methods.Method(i).Type() {
			panic(fmt.Sprintf("bent: %T has a method %s %v that bends none of the store's", by, name, methods.Method(i).Type()))
		}
	}
}
