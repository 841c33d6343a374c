package bent_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/storetest"
)

// panics calls a method with nothing, and reports whether it panics, as those do of what is nil.
func panics(s any, method string) (does bool) {
	defer func() { does = recover() != nil }() // of a call that returns there is nothing to recover from
	m := reflect.ValueOf(s).MethodByName(method)
	var args []reflect.Value
	for i := range m.Type().NumIn() {
		args = append(args, reflect.Zero(m.Type().In(i)))
	}
	m.Call(args)
	return false
}

// idleKill bends one method.
type idleKill struct{}

func (idleKill) Kill(context.Context, int64, string) (store.Run, error) { return store.Run{}, nil }

// TestEachMethodIsBent: a call goes to what bends it, and one that nothing bends to the store.
func TestEachMethodIsBent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of       reflect.Type
		all, one any // what bends each method is nil; what bends one is there, and the store is nil
	}{
		{reflect.TypeFor[store.Store](), bent.StoreOf(nil, struct{ store.Store }{}), bent.StoreOf(nil, idleKill{})},
		{reflect.TypeFor[storetest.Whole](), bent.WholeOf(nil, struct{ storetest.Whole }{}), bent.WholeOf(nil, idleKill{})},
		{reflect.TypeFor[bent.All](), bent.AllOf(nil, struct{ bent.All }{}), bent.AllOf(nil, idleKill{})},
	} {
		for i := range c.of.NumMethod() {
			name := c.of.Method(i).Name
			if !panics(c.all, name) {
				t.Errorf("%v: %s is not bent", c.of, name)
			}
			if panics(c.one, name) != (name != "Kill") {
				t.Errorf("%v: %s, which nothing bends but Kill, panics: %v", c.of, name, name == "Kill")
			}
		}
	}
}

// spare bends a method by a pointer.
type spare struct{}

func (*spare) Kill(context.Context, int64, string) (store.Run, error) { return store.Run{}, nil }

// misspelt has a method that no store has.
type misspelt struct{ idleKill }

func (misspelt) Kil(context.Context, int64, string) (store.Run, error) { return store.Run{}, nil }

// older has a method as stores had it once.
type older struct{}

func (older) Kill(context.Context, int64) (store.Run, error) { return store.Run{}, nil }

// accounts bends what a store.Store has not.
type accounts struct{ idleKill }

func (accounts) PassLogin(context.Context, string) error { return nil }

// TestWhatBendsNothing is found when the store is made.
func TestWhatBendsNothing(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]any{
		"nothing": struct{}{}, "spare": spare{}, "misspelt": misspelt{}, "older": older{}, "accounts": accounts{},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is taken", name)
				}
			}()
			bent.StoreOf(nil, by)
		}()
	}
	bent.StoreOf(nil, &spare{})
	bent.WholeOf(nil, accounts{})
}
