package postgres

import "github.com/xxljob/xxljob"

// startGroup are starts, by their places, that fit into one statement.
type startGroup struct {
	places  []int
	refused bool
	targets []string // of the one broadcast that it is
	brief   bool     // all of its runs are known
	own     bool     // and all go to the owner's own executors: see startown.go
}

// groupStarts keeps the order among starts of one run, and among starts of one
// serial job.
func groupStarts(starts []xxljob.Start) []startGroup {
	var groups []startGroup
	plain := -1 // the group that plain starts are added to
	busy := map[int64]bool{}
	epochs := map[int]int64{} // of the group's shards: a fence has one for each
	for i := range starts {
		st := &starts[i]
		refused := st.State == xxljob.StateRefused
		single := len(st.Targets) > 0 || refused
		epoch, has := epochs[st.Shard]
		clash := busy[-st.RunID] || st.Serial && busy[st.JobID] || has && epoch != st.Epoch
		if plain < 0 || clash || single || len(groups[plain].places) == startBatch {
			groups = append(groups, startGroup{refused: refused, brief: !single, own: !single})
			clear(busy)
			clear(epochs)
			plain = len(groups) - 1
		}
		g := &groups[plain]
		g.places = append(g.places, i)
		g.brief = g.brief && st.Known != nil
		g.own = g.own && g.brief && isOwn(st) && st.Owner == starts[g.places[0]].Owner
		busy[-st.RunID], busy[st.JobID] = true, true
		epochs[st.Shard] = st.Epoch
		if single {
			g.targets = st.Targets
			if refused {
				g.targets = nil
			}
			plain = -1
		}
	}
	return groups
}
