package postgres

import "github.com/xxljob/xxljob/store"

// startGroup are starts, by their places, that fit into one statement.
type startGroup struct {
	places  []int
	refused bool
	targets []string // of the one broadcast that it is
	brief   bool     // all of its runs are known
	own     bool     // and all go to the owner's own executors: see startown.go
}

// groupStarts keeps the order among starts of one run, and among starts of one
// serial job. A group is of starts that follow each other.
func (s *Store) groupStarts(starts []store.Start) []startGroup {
	var groups []startGroup
	plain := -1 // the group that plain starts are added to
	all := make([]int, len(starts))
	seen := s.grouping.take() // runs, below zero, and jobs of the group; its shards, since a fence has one epoch for each
	defer s.grouping.giveBack(seen)
	for i := range starts {
		st := &starts[i]
		refused := st.State == store.StateRefused
		single := len(st.Targets) > 0 || refused
		epoch, has := seen.epochs[st.Shard]
		_, again := seen.ids[-st.RunID]
		_, busy := seen.ids[st.JobID]
		clash := again || st.Serial && busy || has && epoch != st.Epoch
		if plain < 0 || clash || single || len(groups[plain].places) == startBatch {
			groups = append(groups, startGroup{places: all[i:i], refused: refused, brief: !single, own: !single})
			seen.clear()
			plain = len(groups) - 1
		}
		g := &groups[plain]
		g.places = append(g.places, i)
		g.brief = g.brief && st.Known != nil
		g.own = g.own && g.brief && isOwn(st) && st.Owner == starts[g.places[0]].Owner
		seen.ids[-st.RunID], seen.ids[st.JobID] = i, i
		seen.epochs[st.Shard] = st.Epoch
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
