package console_test

// The stores on which the tests run: one in memory, or both.

import (
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// Store is what each of the stores of this module is, so that what wraps one has all of it.
type Store = storetest.Whole

// inPostgres is the name of the subtest in which a store is one in Postgres.
const inPostgres = "Postgres"

// onBothStores runs a test with stores in memory and with stores in Postgres, beside other tests:
// what a page shows of what is stored, and what is stored of a form, is to be the same with each.
// A test with a store calls it, unless its time is virtual, which that of a server is not; or it
// is of how the console is mounted, of what it says, or of what it refuses before it asks the
// store; or of very many jobs, in which the store is asked what the tests of a few ask it; or it
// is one for inMemory.
func onBothStores(t *testing.T, test func(*testing.T)) {
	t.Helper()
	t.Parallel()
	t.Run("memory", test)
	t.Run(inPostgres, func(t *testing.T) {
		if stage.Detector {
			t.Skip("what is between the calls of the process is in the server there: the race detector has nothing to say of it")
		}
		test(t)
	})
}

// inMemory runs a test with stores in memory alone, beside other tests. It is for one in which
// nothing depends on how the store answers: of who may do what, of how texts and times are shown,
// of how often and for what the store is asked, and of what is said when a call fails, which the
// test has fail in front of the store.
func inMemory(t *testing.T, test func(*testing.T)) {
	t.Helper()
	t.Parallel()
	test(t)
}

// newStore opens an empty store for a test.
func newStore(t *testing.T) Store {
	t.Helper()
	_, below, _ := strings.Cut(t.Name(), "/")
	if name, _, _ := strings.Cut(below, "/"); name == inPostgres {
		return openPostgres(t)
	}
	return memory.New()
}

// atOnce is for a test that makes requests at the same time. Under the race detector only these
// get a site: of requests that come one after the other it has nothing to say.
func atOnce(t *testing.T) {
	t.Helper()
	asksAtOnce.Store(t.Name(), true)
}

var asksAtOnce sync.Map // names of tests

// inTurn skips a test under the race detector, unless it, or the one that it is part of, makes
// requests at the same time.
func inTurn(t *testing.T) {
	t.Helper()
	if !stage.Detector {
		return
	}
	for name := t.Name(); name != "."; name = path.Dir(name) {
		if _, at := asksAtOnce.Load(name); at {
			return
		}
	}
	t.Skip("one request after the other: the race detector has nothing to say of it")
}
