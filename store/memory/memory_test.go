package memory_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestStore holds the store against the contract.
func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return memory.New() })
}

// TestNilContexts: every method that takes a ctx says what is wrong with a nil one, with
// nothing else to do as well.
func TestNilContexts(t *testing.T) {
	t.Parallel()
	store := reflect.ValueOf(memory.New())
	for i := range store.NumMethod() {
		name, m := store.Type().Method(i).Name, store.Method(i)
		if of := m.Type(); of.NumIn() == 0 || of.In(0) != reflect.TypeFor[context.Context]() || of.NumOut() == 0 || of.Out(of.NumOut()-1) != reflect.TypeFor[error]() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			args := make([]reflect.Value, m.Type().NumIn())
			for i := range args {
				args[i] = reflect.Zero(m.Type().In(i))
			}
			defer func() {
				if v := recover(); v != nil {
					t.Errorf("panic: %v", v)
				}
			}()
			out := m.Call(args)
			if err, _ := out[len(out)-1].Interface().(error); err == nil || !strings.Contains(err.Error(), "the context is nil") {
				t.Errorf("%v", err)
			}
		})
	}
}
