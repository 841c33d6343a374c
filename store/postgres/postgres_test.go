package postgres_test

import (
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/postgres"
	"github.com/xxljob/xxljob/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, mode := range []postgres.LeaseMode{postgres.LeaseLock, postgres.LeaseRow} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T) xxljob.Store { return open(t, postgres.Config{LeaseMode: mode}) })
		})
	}
}
