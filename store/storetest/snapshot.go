package storetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xxljob/xxljob/store"
)

// observer is the incarnation by which the suite looks at nodes and shards:
// they are shown only to a node that beats.
const observer = "observer"

// snapshot prints all that the contract lets one read back, so that a case can
// check that a call has changed nothing.
func (e *env) snapshot() string {
	e.Helper()
	var b strings.Builder
	jobs, err := e.Jobs(e.ctx, store.JobFilter{Limit: 10_000})
	e.must(err)
	changed := map[int64]bool{}
	for _, j := range jobs {
		fmt.Fprintf(&b, "job %+v\n", j)
		changed[j.ID] = true
	}
	for _, r := range e.mustRuns(store.RunFilter{Limit: 10_000}) {
		changed[r.JobID] = true
		r.PlanEpoch = 0 // a Scan may stamp it
		fmt.Fprintf(&b, "run %+v\n", r)
	}
	e.snapshotAudit(&b, changed)
	groups, err := e.Groups(e.ctx)
	e.must(err)
	fmt.Fprintf(&b, "groups %+v\n", groups)
	fmt.Fprintf(&b, "lists %+v\n", e.mustLists("a"))
	fmt.Fprintf(&b, "registrations %+v\n", e.mustRegistrations(store.RegistrationFilter{Limit: 10_000}))
	v := e.mustBeat(observer)
	for _, n := range v.Nodes {
		if n.Incarnation != observer {
			fmt.Fprintf(&b, "node %+v\n", n)
		}
	}
	for _, s := range v.Shards {
		fmt.Fprintf(&b, "shard %d of %q under %d\n", s.ID, s.Owner, s.Epoch)
	}
	return b.String()
}

// snapshotAudit prints the changes of the jobs, in order of their ids.
func (e *env) snapshotAudit(b *strings.Builder, jobs map[int64]bool) {
	e.Helper()
	var list []int64
	for id := range jobs {
		list = append(list, id)
	}
	slices.Sort(list)
	for _, id := range list {
		fmt.Fprintf(b, "changes of %d %+v\n", id, e.mustChanges(id))
	}
}
