package finding_test

import (
	"fmt"
	"time"

	"github.com/xxljob/xxljob/finding"
	"github.com/xxljob/xxljob/store"
)

// What needs attention in a cluster, written down here; finding.Read reads it from a store.
func ExampleAttention() {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	world := finding.World{
		Now:    now,
		Counts: []store.JobCount{{App: "billing", Enabled: 12}},
		Served: []store.Served{{App: "billing", By: store.ServedRegistered, Gone: now.Add(-5 * time.Minute)}},
	}
	for _, f := range finding.Attention(world) {
		fmt.Println(f)
		fmt.Println(f.Remedy())
	}
	// Output:
	// app billing: no live executor (enabled jobs: 12), since 2026-03-02T08:55:00Z
	// Start an executor of the app, or stop its jobs.
}
