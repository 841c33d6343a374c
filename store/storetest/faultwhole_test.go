package storetest_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestFaultsOfAWholeStore: faults meet each of its methods that can fail, and what they let pass
// reaches the method of the same name.
func TestFaultsOfAWholeStore(t *testing.T) {
	f := storetest.WrapWhole(memory.New())
	whole := reflect.TypeFor[storetest.Whole]()
	for i := range whole.NumMethod() {
		m := whole.Method(i)
		n := m.Type.NumOut()
		if n == 0 || m.Type.Out(n-1) != reflect.TypeFor[error]() {
			continue
		}
		ctx, cancel := context.WithCancel(t.Context())
		call := func(on any) error {
			in := []reflect.Value{reflect.ValueOf(ctx)}
			for k := 1; k < m.Type.NumIn(); k++ {
				in = append(in, reflect.Zero(m.Type.In(k)))
			}
			err, _ := reflect.ValueOf(on).MethodByName(m.Name).Call(in)[n-1].Interface().(error)
			return err
		}
		remove := f.Inject(m.Name, storetest.Fault{Before: true})
		if err := call(f); !errors.Is(err, storetest.ErrInjected) {
			t.Errorf("%s: %v, want the fault", m.Name, err)
		}
		remove()
		cancel() // which each method of a store says
		if err := call(f); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v of the store, want that of the context", m.Name, err)
		}
		if got := f.Calls(m.Name); got != 2 {
			t.Errorf("%s was called %d times, want 2", m.Name, got)
		}
	}
}
